// The shell's words, and how any view finds its own in the language of the moment.

export const shellWords = {
  en: {
    translation: "Translation", writing: "Writing", reading: "Reading", image: "Image", series: "Series",
    parameters: "{n} parameters", continued: "{read} steps read, {written} foreseen",
    caution: "Attention is a view of what the model mixed together, not an explanation of why it answered as it did.",
    rounded: "This input is long, so the page holds its attention weights rounded to {digits} digits after the point.",
    attention: "Attention", layer: "Layer", head: "Head", mean: "Mean",
    "encoder.self": "Encoder", "decoder.self": "Decoder", "decoder.cross": "Cross",
    level: "Reading level", simple: "Simple", deep: "Deep", language: "Language",
    toDark: "Dark page", toLight: "Light page", help: "Keyboard", close: "Close",
    contents: "On this page", skip: "Skip to the views", more: "Show all", less: "Show less",
    saveSvg: "Save “{title}” as SVG", savePng: "Save “{title}” as PNG",
    part: "a part of a letter", given: "Given to it, not its own answer",
    failed: "This view could not be drawn: {reason}",
    footer: "Written by Heedful. This page is one file and needs no network.",
    keyStep: "a step back or on in the writing", keyLayer: "the layer above or below",
    keyHead: "the head before or after", keyMean: "the mean of all heads", keyLevel: "simple or deep",
    keyLanguage: "English or Korean", keyTheme: "light or dark", keyHelp: "this help", keyTab: "everything else",
  },
  ko: {
    translation: "번역", writing: "글쓰기", reading: "읽기", image: "이미지", series: "시계열",
    parameters: "매개변수 {n} 개", continued: "값 {read}개를 읽고 {written}개를 내다봄",
    caution: "어텐션은 모델이 무엇을 섞었는지 보여 줄 뿐, 왜 그렇게 답했는지를 설명하지는 않습니다.",
    rounded: "입력이 길어 어텐션 가중치를 소수점 아래 {digits}자리로 반올림해 담았습니다.",
    attention: "어텐션", layer: "층", head: "헤드", mean: "평균",
    "encoder.self": "인코더", "decoder.self": "디코더", "decoder.cross": "교차",
    level: "설명 수준", simple: "쉽게", deep: "깊게", language: "언어",
    toDark: "어두운 화면", toLight: "밝은 화면", help: "키보드", close: "닫기",
    contents: "이 페이지에는", skip: "본문으로 건너뛰기", more: "모두 보기", less: "줄여 보기",
    saveSvg: "‘{title}’ SVG로 저장", savePng: "‘{title}’ PNG로 저장",
    part: "글자의 일부", given: "모델의 답이 아니라 모델에게 준 글",
    failed: "이 그림을 그리지 못했습니다: {reason}",
    footer: "Heedful이 만든 페이지입니다. 파일 하나로 되어 있어 네트워크가 필요 없습니다.",
    keyStep: "한 단계 앞이나 뒤로", keyLayer: "위층이나 아래층으로",
    keyHead: "앞이나 뒤의 헤드로", keyMean: "모든 헤드의 평균", keyLevel: "쉽게 또는 깊게",
    keyLanguage: "영어 또는 한국어", keyTheme: "밝게 또는 어둡게", keyHelp: "이 도움말", keyTab: "그 밖의 모든 것",
  },
};

// Of a token that is only a part of a letter a sentence says so: its sign in quotes would read as text.
function withParts(sentence, part) {
  return sentence.replace(/[“‘]◌[”’]/g, (_, place) => (place ? part : part[0].toUpperCase() + part.slice(1)));
}

// t("layerOf", { n: 3 }) puts 3 where the text says {n}. A word that is missing is looked for in the shell's.
export function translator(words, state) {
  return (key, values = {}) => {
    const language = state.get("language");
    const text = words[language]?.[key] ?? shellWords[language]?.[key] ?? words.en?.[key] ?? shellWords.en[key] ?? key;
    if (typeof text !== "string") return text;
    return withParts(text.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole), shellWords[language].part);
  };
}
