"""Which words suit each other, as tables that a person can read and correct: what can be dated, counted, ordered or asked
about, and who does what. Verbs are named by their English, which tells the senses of one lemma apart.
"""

# ruff: noqa: E501

from __future__ import annotations


def verbs(names: str) -> frozenset[str]:
    """A set of verbs, between commas."""
    return frozenset(name.strip() for name in names.split(","))


def nouns(names: str) -> frozenset[str]:
    """A set of Korean words; spaces inside a word are written `_`."""
    return frozenset(name.replace("_", " ") for name in names.split())


# words that suit few others are drawn so many times as often, or they would be too rare to learn
_SELDOM = """
간호사=1.5 이웃=1.5 관광객=2.5 새=9.9 여우=2.7 쥐=2.3 원숭이=6.3 늑대=4.1 오리=7.2 닭=8.6 호랑이=1.6 코끼리=5.4 거북이=6.7 강=2.6 정원=3.5
연구실=4.3 딸기=1.7 김치=2.7 국수=4.3 라면=2.5 과자=4.8 사탕=3.0 초콜릿=1.9 아이스크림=1.8 채소=5.6 닭고기=5.0 양파=2.5 레몬=1.9 아침=7.8 음식=1.3
그림=7.2 수업=1.3 원피스=2.5 운동화=1.5 구두=1.7 샌들=1.7 컵=1.7 칼=2.3 나무=16.7 거울=1.9 책장=2.0 세탁기=1.3 쓰레기=3.0 설거지=3.8 숟가락=2.4
달력=3.7 선풍기=1.6 시험=1.8 공책=2.2 종이=3.8 사전=2.0 트럭=1.4 길=8.2 다리=15.0 건물=22.3 계획=1.3 이야기=1.3 서버=3.8 화면=4.9 인터넷=2.9
GPU=2.1 손실=1.8 정확도=1.4 하늘=15.9 별=10.6 달=12.0 파티=1.9 팔다=1.4 쫓다=1.9 운전하다=1.4 맵다=2.9 높다=2.4 낮다=3.2 나쁘다=3.2
중요하다=2.5 유명하다=2.4 행복하다=2.4 따뜻하다=1.6 다음_주에=20.8 모레=14.6 다음_달에=63.0 내년에=100.5 직원=1.4 사자=1.9 계란=1.9 피자=1.4 바나나=1.5
포도=2.3 수박=2.4 만두=1.6 떡볶이=3.6 저녁=1.2 강의=1.2 바지=1.7 신발=1.6 장난감=1.4 가격=1.2 생각=1.5 비밀=1.2 이야기하다=1.3 얇다=2.3 파랗다=1.3
노랗다=1.6 주차장=1.3 오렌지=2.2 비빔밥=2.1 불고기=1.7 햄버거=1.3 떡=1.2 맥주=1.4 공연=1.6 스웨터=1.4 슬리퍼=1.8 불=1.4 에어컨=2.3 빨래=4.6 약=1.2
문장=1.2 지도=1.4 연결=1.2 번역=1.2 쉽다=1.3 빨갛다=1.2 지난달에=1.2 곰=1.4 점심=1.2 그래프=1.2 좁다=1.3 운전사=1.3 양말=1.2 목걸이=1.2 청바지=1.2
"""
SELDOM = {word.replace("_", " "): float(times) for word, times in (entry.split("=") for entry in _SELDOM.split())}

# time and manner
HABITS = verbs("""eat, drink, read, study, learn, teach, work, exercise, like, love, dislike, live, know, understand, raise, play, swim,
    cook, watch, listen to, ride, drive, sing, dance, need, have, practice, predict, generate, go hiking, do""")
SMALL = verbs("""open, close, turn on, turn off, wash, brush, take off, laugh, cry, call, wear, get up, drink, enter, click, press, save,
    check, delete, run, throw away, cut, copy, write in, forget, sleep, have, eat, chase, walk, listen to, do, install, calculate,
    solve, memorize, use, rest, take, wait for, sing""")
DATED = verbs("""buy, meet, travel, start, finish, receive, lose, find, go, come, come back, arrive, invite, go shopping,
    go hiking, become""")
SEASONAL = verbs(
    "travel, learn, build, lose, find, go, buy, teach, train, translate, become, come, come back, meet, start, invite, read"
)
JUST_DONE = verbs("""eat, drink, read, arrive, come, come back, save, delete, wash, finish, start, turn on, turn off, open, close,
    receive, buy, meet, see, clean, have, get up, send, cut, bake, copy, enter, install, draw""")
NEAR = nouns("어제 오늘 내일 아침에 저녁에 오후에 밤에 어젯밤에 지금 매일 방금")
REMOTE = nouns("지난달에 작년에 다음_달에 내년에")
OF_THE_DAY = nouns("아침에 저녁에 오후에 밤에 어젯밤에 방금")
MEALS = nouns("아침 점심 저녁")
ABROAD = nouns("한국 미국 일본 중국 프랑스 제주도")
TRIPS = ABROAD | nouns("서울 부산 바다 산 박물관 미술관 동물원 해변")
ROUND_THE_CORNER = nouns("편의점 버스_정류장 운동장 가게 빵집 미용실 지하철역 주차장 우체국 약국")
DAILY_PLACES = nouns("학교 회사 도서관 시장 교회 수영장 체육관 대학교")
WANTED = verbs("""eat, drink, go, buy, learn, travel, read, watch, meet, sleep, rest, make, become, take a walk, swim, exercise, study,
    listen to, have, come, come back, go shopping, go hiking, play, ride, raise, dance, give, send, see""")
ABLE = verbs("""eat, drink, go, come, meet, help, swim, drive, ride, play, cook, make, fix, read, write, translate, teach, buy, explain,
    solve, sing, use, understand, sleep, save, delete, install, run, copy, draw, bake, find, come back, work, study, exercise, check,
    receive, give, send, predict, generate, travel, borrow""")
DUTIES = verbs("""study, work, go, read, write, clean, wash, do, finish, start, buy, meet, help, wait for, take, exercise, rest, sleep,
    get up, fix, prepare, prepare for, memorize, save, check, delete, translate, learn, explain, send, give, come, come back, practice,
    install, enter, solve, analyze, brush, turn off, close""")

NOT_HABITUAL = verbs("fix, rest, open, close, take off, cut, invite, find, throw away, explain")
NOT_GOING_ON = verbs("turn on, turn off, give, invite, get up")
HAD_FOR_A_TIME = nouns("시간 약속 시험 수업 열 질문 계획 휴가 돈 생각 밥")
TRIED = nouns("김치 떡볶이 비빔밥 불고기 김밥 만두 파스타 수프 두부 떡 와인 맥주 녹차 빵 케이크 로봇 앱")
EATEN_AT_A_CAFE = nouns("케이크 빵 샌드위치 아이스크림 과자 샐러드")

# number, and what stands before a noun
COUNTED = {
    "buy": 10, "sell": 10, "eat": 3, "drink": 3, "read": 4, "write": 3, "draw": 3, "make": 5, "receive": 4, "borrow": 3, "give": 5,
    "send": 3, "have": 3, "be": 5, "take": 5, "raise": 3, "solve": 10, "meet": 4, "invite": 10, "see": 3, "bake": 4, "wash": 4,
}  # fmt: skip
DEAR = nouns("의자 책상 가방 시계 반지 코트 상자 우산 모자 인형 셔츠 냄비 베개 그림 지도 사전 티셔츠 개 고양이 강아지")
DESCRIBED_OBJECTS = verbs(
    "buy, sell, wear, eat, drink, read, watch, receive, meet, make, borrow, draw, solve, write, need, have, lose, find, raise"
)
ONE_OF_A_KIND = nouns("시간 돈 약 도움 휴식 데이터 과일 고기 날씨")
NOT_MINE = nouns("시간 돈 열 시험 질문")
MINE = nouns(
    "방 책상 의자 침대 책 공책 연필 컵 생일 지갑 반지 코트 모자 장난감 인형 노트북 볼펜 지우개 수건 베개 이불 숙제"
)
UNSUITED = {
    "나무": nouns("책상 의자 탁자 침대 소파 방 교실 사무실 거실"), "침대": nouns("교실 사무실 거실"), "냉장고": nouns("방 교실 거실"), "새": nouns("책상 의자 탁자 침대 소파 부엌 방"),
    **{food: nouns("침대 의자 소파") for food in ("케이크", "사과", "컵", "접시", "꽃", "숟가락", "컴퓨터")},
}  # fmt: skip

# questions and orders
ASK_WHAT = verbs("eat, drink, read, buy, make, watch, learn, study, draw, listen to, receive, lose, teach")
ASK_WHO = verbs("meet, help, wait for, invite, like, love")
ASK_WHEN = verbs("""go, come, come back, arrive, meet, buy, get up, sleep, start, finish, lose, receive, exercise, clean, travel, build,
    have, go hiking, forget, borrow, install""")
ASK_WHEN_HABITUAL = verbs("get up, sleep, exercise, clean, study, work, rest")
ASK_WHERE = verbs("""eat, drink, buy, meet, study, work, exercise, swim, learn, sleep, see, lose, find, rest, have, travel, take a walk,
    go shopping, read, practice, borrow""")
ASK_WHY = verbs("""go, come, buy, cry, laugh, learn, study, delete, throw away, dislike, get up, meet, turn off, turn on, close, open, call,
    take off, come back, invite, cut""")
ORDERED = verbs("""eat, drink, read, wait for, listen to, open, close, turn on, turn off, wear, wash, brush, take off, clean, study,
    exercise, get up, sleep, rest, go, come, take, use, buy, do, finish, start, memorize, solve, save, delete, install, run, enter, check,
    click, press, throw away, help, call, take a walk, walk, translate, explain, prepare, prepare for, cut, copy, practice, have,
    write in, write, come back, calculate, train""")
REQUESTED_TOO = verbs("make, cook, fix, draw, sing")
ORDERED_SOMEWHERE = verbs("study, eat, exercise, rest, wait for, read, buy, drink, take a walk, practice")
FORBIDDEN_HOW = verbs("sleep, go, come, run, eat, drink")
KEPT_ON = nouns("바지 치마 원피스 블라우스 셔츠 티셔츠 청바지 옷 스웨터 양말")
WRITTEN_DOWN = nouns("이름 답 편지 이메일 문장 엽서")
NOT_TOGETHER = nouns("회사 학교 경찰서 치과 버스_정류장 교회 주차장")

# joined clauses: everyday things, and what does not follow what
IN_PASSING = {
    "read": nouns("책 소설 잡지 신문 만화책 이메일"), "write": nouns("편지 이메일 엽서"), "watch": nouns("영화 텔레비전 드라마 뉴스 경기"),
    "listen to": nouns("음악 라디오 노래 뉴스"), "make": nouns("빵 케이크 샌드위치 샐러드 수프 음식"),
    "buy": nouns("사과 빵 고기 과일 케이크 우유 책 옷 신발 꽃 우산 선물 코트 계란 두부 귤"), "wash": nouns("손 얼굴 그릇 접시 과일"),
    "open": nouns("문 창문 커튼"), "close": nouns("문 창문 커튼"), "turn off": nouns("불 컴퓨터 텔레비전 에어컨"),
    "eat": nouns("사과 빵 고기 과일 케이크 피자 바나나 국수 라면 샌드위치 비빔밥 불고기 김밥 만두 햄버거 파스타 샐러드 떡볶이 오렌지 포도 수박 감자"),
    "drink": nouns("물 커피 우유 차 주스 콜라 녹차 음료수"),
    "go": nouns("집 학교 회사 도서관 공원 시장 식당 카페 극장 서점 병원 수영장 체육관 백화점 은행 편의점 슈퍼마켓 바다"),
}  # fmt: skip
HABITUALLY_BOUGHT = IN_PASSING["buy"] - nouns("우산 코트 선물 신발")
THEN_BED = verbs("eat, drink, wash, read, watch, study, work, exercise, listen to, take a walk, swim")
AFTER_COOKING = verbs("eat, clean, wash, have")
AFTER_TROUBLE = {
    "-지만": verbs("go, study, clean, cook, take a walk, meet"),
    "-아서/어서": verbs("go, read, watch, listen to, drink, sleep, rest"),
}
LAST = verbs("go, sleep, rest, turn off, close, open")
KINDS = (
    "food", "drink", "meal", "reading", "writing", "watching", "listening", "studied", "ball-game", "animal", "clothes", "footwear",
    "headwear", "cooked", "cleaned", "washed", "met", "dear", "received", "saved",
)  # fmt: skip

# who does what
ANY_JOB = verbs(
    "go, come, arrive, come back, work, rest, meet, laugh, talk, wait for, eat, drink, live, help, exercise"
)
DOES = {
    noun: ANY_JOB | verbs(does)
    for noun, does in {
        "학생": "read, write, study, learn, memorize, solve, translate, do, listen to, borrow, understand, use, play, practice, buy, walk, "
        "run, take, explain, finish, start, ride, draw, sing, dance, swim, have, clean, lose, forget, know",
        "아이": "play, cry, sleep, draw, run, sing, learn, wash, brush, ride, read, watch, have, like, take off, walk, lose",
        "의사": "explain, check, read", "간호사": "explain, check, prepare", "경찰관": "find, check, drive, call",
        "요리사": "cook, make, prepare, buy, bake, cut, wash", "가수": "sing, dance, practice, travel",
        "배우": "memorize, practice, dance, travel", "화가": "draw, sell, teach", "손님": "buy, call, have, sleep, lose, take off",
        "직원": "clean, check, explain, prepare, call, delete, save, turn off, close, open, install, turn on",
        "기자": "write, read, check, travel", "변호사": "explain, read, check, write", "이웃": "raise, clean, sing, cook, like, buy, travel",
        "작가": "write, read, travel", "운전사": "drive, sleep", "농부": "sell, raise, have",
        "개발자": "save, delete, install, run, analyze, train, check, use, calculate, explain, copy",
        "연구원": "read, analyze, train, explain, calculate, use, check, translate, save, run",
        "관광객": "buy, travel, go shopping, have, lose, see, watch, take", "군인": "run, walk, sleep, have", "소방관": "run, find, practice",
        "과학자": "read, analyze, explain, calculate", "교수님": "teach, read, explain, check, know, analyze, translate",
        "선생님": "teach, explain, read, write, call, check, translate, buy, prepare, open, close, understand, know, like",
        "사장님": "check, invite, call, explain, drive, buy, know, like",
    }.items()
}  # fmt: skip
JOB_NEEDS = nouns("시간 약속 질문 계획 시험 수업 휴가 휴식 도움 돈 밥")
CALLED = nouns("의사 경찰관 간호사 직원")
NOT_THE_OLD = verbs("cry, dance, run, memorize, solve, borrow, draw, do, start, finish, practice, generate")
SELLERS, SOLD_BY_ANYONE = nouns("농부 화가"), nouns("책 자전거 가방")
PETS = nouns("고양이 개 강아지 토끼 새")
HUNTERS, GRAZERS = (
    nouns("개 강아지 고양이 여우 늑대 곰 호랑이 사자"),
    nouns("토끼 원숭이 코끼리 거북이 쥐 새 오리 닭 곰"),
)
MEAT, NOT_ON_FOOT, MILK_DRINKERS = nouns("고기 생선"), nouns("새 거북이 닭 오리"), nouns("고양이 강아지")

# what is said of a thing, by what was done to it
_LOOKS = "big, small, expensive, cheap, pretty, red, blue, white, black, yellow, thick, thin, long, short, comfortable, light, heavy, cute"
_TASTES, _TOLD = "delicious, spicy, sweet, salty", "interesting, boring, difficult, easy, long, short, scary"
DESCRIBED = {
    verb: verbs(qualities)
    for verb, qualities in {
        "buy": f"{_LOOKS}, {_TASTES}, {_TOLD}, fast", "receive": _LOOKS, "lose": "big, small, expensive, pretty, red, blue, black", "wear": "pretty, red, blue, white, expensive",
        "make": f"{_TASTES}, pretty, big, small, fast, cute", "eat": _TASTES, "drink": f"{_TASTES}, hot, cold", "read": _TOLD,
        "watch": _TOLD, "write": _TOLD, "borrow": f"{_TOLD}, heavy, thick", "bake": _TASTES, "solve": "difficult, easy",
        "translate": "difficult, easy, long, short",
    }.items()
}  # fmt: skip
GOING_ON = verbs("read, watch, eat, drink, write")
