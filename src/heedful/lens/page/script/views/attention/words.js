// Words that all attention views share; layer, head and mean are the shell's.
export const shared = {
  en: {
    "encoder.self.deep": "Encoder self-attention", "decoder.self.deep": "Decoder self-attention",
    "decoder.cross.deep": "Cross-attention", source: "Input", text: "Text", layerName: "Layer {layer}", target: "Output",
    written: "Written", "written.given": "Given",
    hiddenPair: "“{query}” cannot look at “{key}”: it comes later.",
  },
  ko: {
    "encoder.self.deep": "인코더 셀프 어텐션", "decoder.self.deep": "디코더 셀프 어텐션",
    "decoder.cross.deep": "교차 어텐션", source: "입력", text: "글", layerName: "{layer}층", target: "출력",
    written: "쓴 글", "written.given": "준 글",
    hiddenPair: "‘{key}’: 뒤에 오는 토큰이라 ‘{query}’에서는 볼 수 없습니다.",
  },
};

/** A kind's name for the reading level. */
export function kindName({ state, t }, kind) {
  return t(state.get("level") === "deep" ? `${kind}.deep` : kind);
}

/** "Layer 2 · Head 5", "Layer 2 · Mean", or of an only head "Layer 2". */
export function headName({ t }, { attention, head }) {
  if (attention.heads.length === 1) return t("layerName", attention);
  return `${t("layerName", attention)} · ${head === "mean" ? t("mean") : `${t("head")} ${head}`}`;
}
