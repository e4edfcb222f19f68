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


# time and manner
HABITS = verbs("""eat, drink, read, study, learn, teach, work, exercise, like, love, dislike, live, know, understand, raise, play, swim,
    cook, watch, listen to, ride, drive, sing, dance, need, have, practice, predict, generate, go hiking, do""")
SMALL = verbs("""open, close, turn on, turn off, wash, brush, take off, laugh, cry, call, wear, get up, drink, enter, click, press, save,
    check, delete, run, throw away, cut, copy, write in, forget, sleep, have, eat, chase, walk, listen to, do, install, calculate,
    solve, memorize, use, rest, take, wait for, sing""")
DATED = verbs("""buy, meet, travel, start, finish, receive, lose, go, come, come back, arrive, invite, go shopping,
    go hiking, become""")
SEASONAL = verbs(
    "travel, learn, build, lose, find, go, buy, teach, train, translate, become, come, come back, meet, start, invite, read, study, go hiking, work, rest, prepare for, sell"
)
JUST_DONE = verbs("""eat, drink, read, arrive, come, come back, save, delete, wash, finish, start, turn on, turn off, open, close,
    receive, buy, meet, see, clean, have, get up, send, cut, bake, copy, enter, install, draw""")
IN_THE_SKY = nouns("하늘 별 달")
NEAR = nouns("어제 오늘 내일 아침에 저녁에 오후에 밤에 어젯밤에 지금 매일 방금")
REMOTE = nouns("지난달에 작년에 다음_달에 내년에")
OF_THE_DAY = nouns("아침에 저녁에 오후에 밤에 어젯밤에 방금")
MEALS = nouns("아침 점심 저녁")
FOR_DAYS = verbs("work, rest, study")
READ_FOR_HOURS = nouns("책 소설 만화책 논문 잡지")
READ_SOMEWHERE = READ_FOR_HOURS | nouns("신문")
ABROAD = nouns("한국 미국 일본 중국 프랑스 제주도")
TRIPS = ABROAD | nouns("서울 부산 바다 산 박물관 미술관 동물원 해변")
ROUND_THE_CORNER = nouns("편의점 버스_정류장 운동장 가게 빵집 미용실 지하철역 주차장 우체국 약국")
DAILY_PLACES = nouns("학교 회사 도서관 시장 교회 수영장 체육관 대학교")
WANTED = verbs("""eat, drink, go, buy, learn, travel, read, watch, meet, sleep, rest, make, become, take a walk, swim, exercise, study,
    listen to, have, come, come back, go shopping, go hiking, play, ride, raise, dance, give, send, see""")
ABLE = verbs("""eat, drink, go, come, meet, help, swim, drive, ride, play, cook, make, fix, read, write, translate, teach, explain,
    solve, sing, use, understand, save, delete, install, run, copy, draw, bake, find, come back, work, study, exercise, check,
    receive, give, send, predict, generate, travel, borrow""")
DUTIES = verbs("""study, work, go, read, write, clean, wash, do, finish, start, buy, meet, help, wait for, take, exercise, rest, sleep,
    get up, fix, prepare, prepare for, memorize, save, check, delete, translate, learn, explain, send, give, come, come back, practice,
    install, enter, solve, analyze, brush, turn off, close""")

NOT_HABITUAL = verbs("prepare, prepare for, fix, rest, open, close, take off, cut, invite, find, throw away, explain")
NOT_GOING_ON = verbs("buy, sell, turn on, turn off, give, invite, get up")
UNABLE = (ABLE | DUTIES) - verbs("learn")
NOT_REFUSED = verbs(
    "wash, brush, cut, receive, memorize, walk, run, laugh, draw, check, calculate, predict, generate, find"
)
DENIED_SOMEWHERE = verbs("study, work, exercise, eat, sleep, meet, buy, drink, rest")
FOR_CHILDREN, CHILDLIKE = nouns("인형 사탕 공"), nouns("여동생 남동생 아들 딸 사촌 친구")
AWAITED_GIFTS = nouns("선물 돈 표")
NOT_DENIED = verbs("cut, dislike, laugh, find")
NOT_LACKED = nouns("질문")
NOT_OVER = verbs("know, love, like, dislike, raise")
HAD_FOR_A_TIME = nouns("시간 약속 시험 수업 열 질문 계획 휴가 돈 밥")
TRIED = nouns(
    "GPU 인터넷 노트북 프린터 젓가락 이어폰 카메라 김치 떡볶이 비빔밥 불고기 김밥 만두 파스타 수프 두부 떡 와인 맥주 녹차 빵 케이크 로봇 앱"
)
_FROM_TOWN = nouns(
    "옷 셔츠 바지 코트 신발 모자 안경 장갑 반지 시계 가방 선물 지갑 운동화 목걸이 치마 스웨터 청바지 티셔츠 재킷 블라우스 슬리퍼 샌들 노트북 카메라 휴대폰 이불"
)
AT = {
    ("eat", "카페"): nouns("케이크 빵 샌드위치 아이스크림 과자 샐러드"),
    ("eat", "식당"): nouns("고기 생선 피자 국수 라면 샐러드 수프 닭고기 비빔밥 불고기 김밥 만두 햄버거 파스타 떡볶이 두부 아침 점심 저녁"),
    ("eat", "학교"): nouns("빵 샌드위치 과자 김밥 점심 사과 바나나"),
    ("watch", "거실"): nouns("텔레비전 영화 드라마 뉴스 경기"), ("watch", "방"): nouns("텔레비전 영화 드라마 뉴스 경기"),
    ("watch", "집"): nouns("텔레비전 영화 드라마 뉴스 경기"), ("watch", "극장"): nouns("영화 공연"), ("watch", "학교"): nouns("영화 공연 경기"),
    ("borrow", "도서관"): nouns("책 만화책 노트북 우산"), ("borrow", "학교"): nouns("책 우산 연필 볼펜 지우개 가위 공 노트북"),
    ("buy", "시장"): nouns("치즈 계란 사과 빵 고기 과일 옷 셔츠 바지 신발 모자 장갑 가방 꽃 우산 양말 치마 컵 접시 수건 이불 숟가락 냄비 양파 두부 버섯 귤 복숭아 고구마 김밥 떡 소금"),
    ("buy", "백화점"): _FROM_TOWN, ("buy", "서울"): _FROM_TOWN, ("buy", "부산"): _FROM_TOWN,
    ("use", "학교"): nouns("컴퓨터 노트북 프린터 사전 가위 인터넷"), ("use", "회사"): nouns("컴퓨터 노트북 프린터 인터넷 휴대폰 GPU"),
    ("take", "병원"): nouns("약"),
    ("make", "학교"): nouns("로봇 앱 프로그램 모델 의자 상자 샌드위치"), ("make", "회사"): nouns("로봇 앱 프로그램 모델"),
    ("make", "부엌"): nouns("빵 케이크 샌드위치 샐러드 수프 김치 음식"),
}  # fmt: skip

# number, and what stands before a noun
COUNTED = {
    "buy": 10, "eat": 3, "drink": 3, "read": 4, "write": 3, "draw": 3, "make": 5, "receive": 4, "borrow": 3, "give": 5,
    "send": 3, "have": 3, "be": 5, "take": 5, "raise": 3, "solve": 10, "meet": 4, "invite": 10, "see": 3, "bake": 4, "wash": 4,
}  # fmt: skip
DEAR = nouns("의자 책상 가방 시계 반지 코트 상자 우산 모자 인형 셔츠 냄비 베개 그림 지도 사전 티셔츠 개 고양이 강아지")
ONE_OF_A_KIND = nouns("밥 시간 돈 약 도움 휴식 데이터 과일 고기 날씨")
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
NOT_TO_ORDER, NOT_SO = nouns("잘 혼자 많이 늦게"), nouns("혼자 많이 늦게")
ORDERED_IN_NUMBERS = verbs("buy, wash, solve")
FAULTS = verbs("expensive, boring, heavy, spicy, salty, scary, difficult, thick, thin, short, long")
WRITTEN_DOWN = nouns("이름 답 편지 이메일 문장 엽서")
NOT_TOGETHER = nouns("회사 학교 경찰서 치과 버스_정류장 교회 주차장")

# joined clauses: everyday things, and what does not follow what
IN_PASSING = {
    "read": nouns("책 소설 잡지 신문 만화책 이메일"), "write": nouns("편지 이메일 엽서"), "watch": nouns("영화 텔레비전 드라마 뉴스 경기"),
    "listen to": nouns("음악 라디오 노래 뉴스"), "make": nouns("빵 케이크 샌드위치 샐러드 수프 음식"),
    "buy": nouns("사과 빵 고기 과일 케이크 우유 책 옷 신발 꽃 우산 선물 코트 계란 두부 귤"), "wash": nouns("손 얼굴 그릇 접시 과일"),
    "open": nouns("문 창문 커튼"), "close": nouns("문 창문 커튼"), "turn off": nouns("불 컴퓨터 텔레비전 에어컨"),
    "eat": nouns("사과 빵 고기 과일 케이크 피자 바나나 국수 라면 샌드위치 비빔밥 불고기 김밥 만두 햄버거 파스타 샐러드 떡볶이 오렌지 포도 수박 감자 닭고기"),
    "drink": nouns("물 커피 우유 차 주스 콜라 녹차 음료수"),
    "go": nouns("집 학교 회사 도서관 공원 시장 식당 카페 극장 서점 병원 수영장 체육관 백화점 은행 편의점 슈퍼마켓 바다"),
}  # fmt: skip
HABITUALLY_BOUGHT = IN_PASSING["buy"] - nouns("우산 코트 선물 신발")
NOT_THEN_TO = {
    "wear": nouns("수영장 체육관 집 바다"), "wash": nouns("수영장 체육관 바다 공원"),
    "exercise": nouns("체육관 수영장 공원 집"), "swim": nouns("수영장 바다 체육관"), "eat": nouns("식당"), "drink": nouns("카페 식당"), "watch": nouns("극장"),
    "buy": nouns("시장 편의점 슈퍼마켓 백화점 서점"), "work": nouns("회사"), "clean": nouns("집"), "take a walk": nouns("공원"),
}  # fmt: skip
THEN_BED = verbs("eat, drink, wash, read, watch, study, work, exercise, listen to, take a walk, swim")
THEN = {
    "cook": verbs("eat, clean, wash"), "make": verbs("eat, clean, wash"), "wear": verbs("go"), "walk": verbs("-"), "swim": verbs("eat, drink, rest, sleep, go"),
}  # fmt: skip
GIVEN_TIME = verbs("read, watch, listen to, study, exercise, clean, cook, take a walk, meet, go, rest")
AFTER_TROUBLE = {
    "-지만": verbs("go, study, clean, cook, take a walk, meet"),
    "-아서/어서": verbs("go, read, watch, listen to, drink, sleep, rest"),
}
POOR_MERITS = {"be big": verbs("be noisy, be heavy, be slow"), "be bright": verbs("be noisy, be heavy")}
LAST = verbs("go, sleep, rest, turn off, close, open")
KINDS = (
    "food", "drink", "meal", "reading", "writing", "watching", "listening", "studied", "ball-game", "animal", "clothes", "footwear",
    "headwear", "cooked", "cleaned", "rinsed", "met", "dear", "received", "saved",
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
        "요리사": "cook, prepare, buy, bake, cut, wash", "가수": "sing, dance, practice, travel",
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
HELPERS = nouns("의사 간호사 경찰관 소방관 직원 군인 변호사 학생 이웃")
TELLS_APART = {
    person: (does - ANY_JOB - verbs("use, have, like, take off, call, lose, buy"))
    | ({"help"} if person in HELPERS else set())
    for person, does in DOES.items()
}
AT_SCHOOL, NOT_AT_WORK = nouns("학생 아이 선생님"), nouns("학생 아이 농부 관광객 군인 소방관 손님 화가")
AT_HOME, ROOMS = nouns("아이 학생 손님"), nouns("집 방 부엌 거실")
JOB_NEEDS = nouns("시간 약속 질문 계획 시험 수업 휴가 휴식 도움 돈 밥")
GIVEN_OFTEN, FOR_WOMEN = nouns("편지 이메일 문자 메시지 사진 돈"), nouns("원피스 치마 블라우스")
CALLED = nouns("의사 경찰관 간호사 직원")
NOT_THE_OLD = verbs("cry, dance, run, memorize, solve, borrow, draw, do, start, finish, practice, generate")
SELLERS, SOLD_BY_ANYONE = nouns("농부 화가"), nouns("책 자전거 가방")
PETS = nouns("고양이 개 강아지 토끼 새")
HUNTERS, GRAZERS = (
    nouns("개 강아지 고양이 여우 늑대 곰 호랑이 사자"),
    nouns("토끼 원숭이 코끼리 거북이 쥐 새 오리 닭 곰"),
)
FISHERS, PREY = nouns("고양이 곰"), nouns("토끼 쥐 새 닭 오리 고양이")
MEAT, NOT_ON_FOOT, MILK_DRINKERS = nouns("고기 생선"), nouns("새 거북이 닭 오리"), nouns("고양이 강아지")

# what is said of a thing, by what was done to it
_LOOKS = "big, small, expensive, cheap, pretty, red, blue, white, black, yellow, thick, thin, long, short, comfortable, light, heavy, cute"
_TASTES, _TOLD = "delicious, spicy, sweet, salty", "interesting, boring, difficult, easy, long, short, scary"
DESCRIBED = {
    verb: verbs(qualities)
    for verb, qualities in {
        "buy": f"{_LOOKS}, {_TASTES}, {_TOLD}, fast", "receive": "big, small, expensive, pretty",
        "lose": "big, small, expensive, pretty, red, blue, black", "wear": "pretty, red, blue, white, black, yellow, expensive, thick, thin, long, short, comfortable",
        "draw": "pretty, cute, big, small", "need": "big, small", "have": "big, small, expensive, good, fast", "raise": "big, small, cute", "meet": "famous", "see": "famous, big, small, cute",
        "make": f"{_TASTES}, pretty, big, small, fast, cute", "eat": _TASTES, "drink": f"{_TASTES}, hot, cold", "read": _TOLD,
        "watch": _TOLD, "write": _TOLD, "borrow": "interesting, difficult, easy, thick", "bake": _TASTES, "solve": "difficult, easy",
        "translate": "difficult, easy, long, short",
    }.items()
}  # fmt: skip
USED_UP = verbs("eat, drink, watch")
GOING_ON = verbs("read, watch, eat, drink, write")
