"""Verbs and adjectives for the tests: every irregular class beside its regular twins."""

from heedful.demo.korean_morphology import Conjugation, Verb

_VERBS: dict[Conjugation, str] = {
    "regular": """
        가 자 사 만나 일어나 서 오 보 나오 주 배우 나누 바꾸 꾸 두 마시 다니 가르치 기다리 지 치 피 모이 켜 펴 보내 내
        매 세 메 되 쉬 뛰 바뀌 띄 하 공부하 시작하 쓰 끄 뜨 모으 담그 따르 들르 치르 잠그 읽 먹 입 잡 씹 받 닫 믿 얻 웃
        씻 벗 앉 찾 찍 신 끊 잃 놓 넣 쌓 낳 있 만들 살 알 놀 열 팔 울 걸 들 말 않""",
    "ㅂ": "돕 줍 굽 눕",
    "ㄷ": "듣 걷 묻 싣 깨닫",
    "ㅅ": "짓 낫 붓 잇 긋",
    "르": "부르 모르 고르 누르 흐르 오르 자르 서두르 기르",
    "러": "이르",
    "우": "푸",
}
_ADJECTIVES: dict[Conjugation, str] = {
    "regular": """
        작 많 좋 싫 높 싶 젊 얇 넓 괜찮 좁 크 예쁘 바쁘 아프 나쁘 고프 기쁘 슬프 비싸 싸 차 흐리 느리 세 희 필요하
        따뜻하 행복하 멀 길 달 힘들 재미있 맛없 없""",
    "ㅂ": "춥 덥 어렵 쉽 가깝 고맙 아름답 무겁 맵 곱 새롭",
    "ㅅ": "낫",
    "ㅎ": "하얗 빨갛 노랗 까맣 파랗 그렇 이렇 어떻 커다랗 퍼렇 뿌옇",
    "르": "빠르 다르 배부르",
    "러": "푸르",
}

_ACTIONS = [Verb(stem, kind) for kind, stems in _VERBS.items() for stem in stems.split()]
_STATES = [Verb(stem, kind, adjective=True) for kind, stems in _ADJECTIVES.items() for stem in stems.split()]
VERBS = [*_ACTIONS, *_STATES]
