"""Verbs, adjectives and adverbs, as tables that a person can read and correct.

Verbs: `lemma:kind | english | objects | places | adverbs | marks`. A star marks the demo's words; objects and subjects
are classes of nouns, so that nothing is eaten that is not food. (A word in brackets) is only the demo's. One lemma may have several lines: 쓰다 is *write*, *wear*
or *use* by its object. Marks: `state` has no progressive and no command; `once` happens, and is no habit; `animal` is
what animals do as well, with their own objects after `by animals`; `noun` is a noun with 하다 (공부 안 해요);
`software` speaks of the file at hand, and is a message when nobody is named (파일을 저장할 수 없습니다); `own` is done to what
is one's own, and what is done to `many` is meant in general (memorize words); what `arises` is new (an error).
"""

# ruff: noqa: E501

VERBS = """
먹다*      | eat         | food meal                 | 집 식당 학교 카페 (부엌)             | (빨리) 천천히            | animal
마시다*    | drink       | drink                     | 집 카페 식당 회사                    | (빨리) 천천히            | animal
읽다*      | read        | reading                   | 집 도서관 학교 카페 방 교실          | (천천히) 조용히 다시     |
쓰다*      | write       | writing                   | 집 학교 카페 방 회사 도서관          | (천천히) (빨리) 다시     |
보다*      | watch       | watching                  | 집 방 극장 거실 학교                 | 혼자 (조용히) 다시       |
보다*      | see         | met seen                  | 학교 공원 시장 카페 병원 공항        | 다시                     | once animal
듣다:ㄷ*   | listen to   | listening                 | 집 방 학교 카페 공원                 | (조용히) 혼자 다시       |
입다*      | wear        | clothes                   |                                 |                          |
신다*      | wear        | footwear                  |                                 |                          |
쓰다*      | wear        | headwear                  |                                |                          |
끼다*      | wear        | handwear                  |                                  |                          |
사다*      | buy         | goods                     | 시장 서울 부산 가게 백화점           |                          |
팔다*      | sell        | sold                      | 시장 가게                            |                          |
만들다*    | make        | made                      | 집 부엌 회사 학교                    | (빨리) (다시)              | creates
만나다*    | meet        | met                       | 공원 학교 카페 도서관 서울 시장 공항 | 다시 (일찍)              |
기다리다*  | wait for    | met awaited               | 집 학교 공원 카페 병원 공항 버스_정류장        | (조용히) 혼자            |
돕다:ㅂ*   | help        | met                       | 집 학교 병원 회사                    |                          |
좋아하다*  | like        | liked animal dear         |                                      |                          | state animal
사랑하다   | love        | dear                      |                                      |                          | state
부르다:르* | call        | met                       | (집) (학교) (공원)                   | 다시 (빨리)              | once
부르다:르  | sing        | 노래                      | 집 방 학교 공원                      | 잘 다시                  |
쫓다*      | chase       | animal                    | 공원 집 정원                         | 빨리                     | once only animals
찾다       | find        | lost                      | 집 학교 공원 방                      |                        | once done own
배우다*    | learn       | skill                     | 학교 집 대학교                       | (빨리)                   |
가르치다*  | teach       | studied                   | 학교 집 대학교                       | 잘                   |
공부하다*  | study       | studied                   | 집 도서관 학교 카페 방               | 열심히 혼자 (조용히)     | noun
요리하다*  | cook        | -                         | 집 부엌 식당                         | 잘 (빨리)             | noun
청소하다*  | clean       | cleaned                   |                                      | (빨리)             | noun
씻다*      | wash        | washed                    | 집 부엌 화장실                       | (빨리) 다시              |
씻다       | wash        | rinsed                    | 집 부엌                              | 다시                     | at-hand
닦다       | brush       | 이                        | 집 화장실                            |                     |
열다*      | open        | closable                  |                                      | (빨리) (천천히) 조용히 다시 | once at-hand
닫다*      | close       | closable                  |                                      | (빨리) (천천히) 조용히 다시 | once at-hand
켜다*      | turn on     | switch                    |                                      | (빨리) 다시              | at-hand
끄다*      | turn off    | switch                    |                                      | (빨리) 다시              | at-hand
타다*      | take        | public-transport          | 서울 부산 (한국)                     |                          |
타다*      | ride        | 자전거                          | 공원 (학교)                          | 잘 혼자                  |
운전하다   | drive       | 자동차 트럭                 | 서울 부산                            |                    | noun
타다       | ride        | 오토바이                  |                                      | 잘                       |
치다       | play        | 테니스                    | 공원 학교 운동장                     | 잘 열심히                |
찍다       | take        | 사진                      | 공원 학교 바다 박물관                |                          |
그리다*    | draw        | drawn                     | 집 학교 공원 (방)                    | 잘 (천천히)              |
받다*      | receive     | received                  | 집 학교 회사                         |                          | once
빌리다*    | borrow      | borrowed                  | 도서관 학교                          |                          | once
잃어버리다 | lose        | lost                      | 시장 공항 학교 공원                  |                          | once done own
키우다     | raise       | raised                    | 집                                   |                          | state
치다       | play        | struck                    | 집 학교 방                           | 잘 열심히                |
하다*      | do          | 숙제                      | 집 학교 도서관 방                    | 빨리                  |
하다*      | play        | ball-game                 | 학교 공원 운동장                     | 잘 열심히                |
하다       | do          | 설거지 빨래               | 집                                   |                        |
시작하다   | start       | 숙제 일                   |                                      | 다시                   | noun once
끝내다     | finish      | 숙제 일                   | 집 회사 학교                         | 빨리                     | once
짓다:ㅅ    | build       | built                     |                                  |                     | creates once
고치다*    | fix         | fixed                     | 집 회사 (가게)                       | (빨리) (잘) 다시         | at-hand
이해하다   | understand  | understood                |                                      | 잘                     | noun state at-hand
외우다     | memorize    | memorized                 | 집 학교 도서관                       | 열심히 다시                 | many
풀다       | solve       | 문제                      | 학교 집 도서관                       | 다시 혼자                |
알다       | know        | known                     |                                      | 잘                       | state at-hand
설명하다   | explain     | explained                 | 학교 회사                            | 다시 천천히             | noun at-hand
번역하다*  | translate   | translated                | 집 회사 도서관                       | (빨리) (천천히) (잘) 다시 | noun technical
준비하다   | prepare     | prepared                  | 집 회사 학교                         |                        | noun
준비하다   | prepare for | 파티 회의 시험            | 집 회사 학교                         | 열심히                   | noun
하다       | play        | 게임                      | 집 방                                | 혼자 많이                |
초대하다   | invite      | met                       |                                      | 다시                     | noun
저장하다*  | save        | saved                     |                                      | (빨리) 다시              | noun software technical
삭제하다   | delete      | file                      |                                      |                      | noun software once technical
설치하다   | install     | installed                 |                                      | 다시                   | noun software once technical
실행하다   | run         | executed                  |                                      | 다시                     | noun software once technical
입력하다   | enter       | entered                   |                                      | 다시                   | noun software once technical
확인하다   | check       | checked                   | 집 회사                              | 다시                   | noun software
분석하다   | analyze     | analyzed                  | 회사 연구실                          | 다시                   | noun technical at-hand
학습시키다 | train       | trained                   | 연구실 회사                          | 다시                     | technical
쓰다       | use         | used                      | 집 회사 학교                         |                          |
먹다       | have        | 밥                        | 집 식당 회사 학교                    | 혼자 많이                | once
쓰다       | write in    | 일기                      | 집                                   |                          |
누르다:르  | press       | 버튼                      |                                      | 다시                     | at-hand once
굽다:ㅂ    | bake        | baked                     | 집 부엌                              |                          |
빨다       | wash        | laundered                 | 집                                   | 다시                     | at-hand
자르다:르  | cut         | cut                       | 부엌                                 |                          | once at-hand
복사하다   | copy        | copied                    |                                      | 다시                     | noun software once technical
연습하다   | practice    | practiced                 | 집 학교 방                           | 열심히 혼자              | noun
싫어하다   | dislike     | disliked                  |                                      |                          | state
잊어버리다 | forget      | forgotten                 |                                      |                          | once done at-hand
등산하다   | go hiking   | -                         | 제주도                               | 혼자                     | noun
쇼핑하다   | go shopping | -                         | 백화점 시장 서울 슈퍼마켓            | 혼자 많이                | noun
먹다       | take        | 약 비타민                 | 집 병원                              |                        |
벗다       | take off    | 코트 재킷 스웨터 footwear headwear | 집                              |                        | once own
감다       | wash        | 머리                      | 집 화장실                            |                        |
버리다     | throw away  | thrown                    |                                      |                        | once at-hand
예측하다   | predict     | predicted                 |                                      | 잘                     | noun machines
생성하다   | generate    | generated                 |                                      | 잘 다시                | noun machines
계산하다   | calculate   | calculated                | 회사 연구실                          | 다시                   | noun technical
누르다:르  | click       | clicked                   |                                      | 다시                   | at-hand once
자다*      | sleep       | -                         | 집 방 호텔                           | 많이 잘 일찍 늦게 (조용히) | animal
쉬다*      | rest        | -                         | 집 공원 방 카페                      | (조용히) 많이         |
일하다*    | work        | -                         | 집 회사 병원 식당 은행               | 열심히 (늦게) 많이       | noun
운동하다*  | exercise    | -                         | 공원 집 체육관                       | 열심히 혼자              | noun
수영하다*  | swim        | -                         | 바다 수영장 강                       | 잘                | noun
걷다:ㄷ*   | walk        | -                         | 공원 서울 산 강 | 빨리 천천히 혼자 많이    | animal
달리다     | run         | -                         | 공원 학교 운동장                     | 빨리                     | animal
웃다*      | laugh       | -                         | 학교 집 회사                         | 많이 (조용히)            |
울다*      | cry         | -                         | 방 집 학교                           | 많이 (조용히) (혼자)     | once
일어나다*  | get up      | -                         |                                      | 일찍 늦게 (빨리) (천천히) | moment
춤추다     | dance       | -                         | 집 공원 학교                         | 열심히 혼자  |
산책하다   | take a walk | -                         | 공원 바다 산 강 해변 | 혼자                     | noun
여행하다   | travel      | -                         | 한국 제주도 일본 미국 중국 프랑스                | 혼자 많이                | noun
노래하다   | sing        | -                         | 집 공원 학교                         | 열심히 혼자 | noun
이야기하다 | talk        | -                         | 카페 학교 집                         | 많이 조용히              | noun
"""

MOTION = """
가다*     | go      | 학교 회사 도서관 병원 공원 시장 식당 카페 서울 부산 집 은행 서점 극장 한국 미국 제주도 일본 공항 기차역 호텔 우체국 약국 가게 백화점 바다 산 수영장 체육관 미술관 박물관 동물원 교회 대학교 빵집 미용실 운동장 편의점 슈퍼마켓 지하철역 경찰서 중국 프랑스 치과 해변 주차장 버스_정류장 | 일찍 늦게 빨리 혼자 |
오다*     | come    | 학교 회사 도서관 병원 공원 식당 카페 서울 부산 집 한국 공항 호텔 사무실 | 일찍 늦게 빨리 혼자 | once
도착하다  | arrive  | 학교 회사 병원 식당 서울 부산 공항 기차역 호텔 | 일찍 늦게 | at due
돌아오다  | come back | 집 학교 회사 서울 부산 한국 호텔 | 일찍 늦게 | once
살다*     | live    | 서울 부산 한국 미국 제주도 일본 도시 마을 중국 프랑스 | 혼자 | at state
"""

TRANSFER = """
주다*   | give | given
보내다  | send | sent
"""

ADJECTIVES = """
크다*        | big         | big-things
작다*        | small       | big-things
비싸다*      | expensive   | priced
싸다*        | cheap       | priced
맛있다*      | delicious   | tasty
맵다:ㅂ      | spicy       | spicy
달다         | sweet       | sweet
짜다         | salty       | salty
넓다         | spacious    | roomy
좁다         | cramped     | roomy
두껍다:ㅂ    | thick       | thick
얇다         | thin        | thick
귀엽다:ㅂ    | cute        | cute
편하다       | comfortable | comfortable
무섭다:ㅂ    | scary       | scary
뜨겁다:ㅂ*   | hot         | hot-or-cold
차갑다:ㅂ    | cold        | hot-or-cold
재미있다*    | interesting | interesting
재미없다     | boring      | interesting
어렵다:ㅂ*   | difficult   | difficult
쉽다:ㅂ*     | easy        | difficult
무겁다:ㅂ*   | heavy       | weighed
가볍다:ㅂ*   | light       | weighed
예쁘다*      | pretty      | pretty
길다*        | long        | long
짧다*        | short       | long
높다         | high        | high
낮다         | low         | low
빠르다:르*   | fast        | fast
느리다*      | slow        | fast
깨끗하다*    | clean       | clean
더럽다:ㅂ    | dirty       | clean
조용하다*    | quiet       | quiet
시끄럽다:ㅂ* | noisy       | quiet
밝다         | bright      | bright
어둡다:ㅂ    | dark        | bright
가깝다:ㅂ    | near        | near
멀다         | far         | near
좋다*        | good        | good
나쁘다       | bad         | 날씨 생각 결과 계획
중요하다     | important   | important
유명하다     | famous      | famous
친절하다*    | kind        | kind
똑똑하다     | smart       | kind
바쁘다*      | busy        | anyone
행복하다     | happy       | anyone
아프다*      | sick        | anyone
피곤하다*    | tired       | oneself
배고프다*    | hungry      | oneself
목마르다:르  | thirsty     | oneself
기쁘다       | glad        | oneself
슬프다*      | sad         | oneself
심심하다     | bored       | oneself
하얗다:ㅎ    | white       | colored
빨갛다:ㅎ*   | red         | colored
파랗다:ㅎ*   | blue        | colored
노랗다:ㅎ    | yellow      | colored
까맣다:ㅎ    | black       | colored
"""

WEATHER = """
비가 오다*      | rain
눈이 오다*      | snow
춥다:ㅂ*        | be cold
덥다:ㅂ*        | be hot
따뜻하다        | be warm
시원하다        | be cool
맑다            | be sunny
흐리다          | be cloudy
바람이 불다     | be windy
"""

ADVERBS = """
자주*=often 항상*=always 가끔=sometimes 보통=usually
많이*=a_lot 빨리*=quickly 천천히*=slowly 열심히*=hard 잘*=well 일찍*=early 늦게*=late 조용히*=quietly 다시*=again
같이=together 혼자*=alone
"""

TIMES = """
어제*=yesterday=past 지난주에*=last_week=past 그저께=the_day_before_yesterday=past 지난달에=last_month=past
작년에=last_year=past 어젯밤에=last_night=past 방금=just_now=past 이번_주에=this_week=past,future 내일*=tomorrow=future 다음_주에*=next_week=future 모레=the_day_after_tomorrow=future
다음_달에=next_month=future 내년에=next_year=future 매일*=every_day=habit 매주=every_week=habit 지금*=now=now
오늘*=today=past,future 아침에*=in_the_morning=past,future,habit 저녁에*=in_the_evening=past,future,habit
오후에=in_the_afternoon=past,future,habit 밤에=at_night=past,future,habit 주말에*=on_the_weekend=past,future,habit
월요일에*=on_Monday=past,future 화요일에=on_Tuesday=past,future 수요일에=on_Wednesday=past,future 목요일에=on_Thursday=past,future
금요일에*=on_Friday=past,future 토요일에*=on_Saturday=past,future 일요일에=on_Sunday=past,future
"""

MESSAGES = """
발생하다 | occur       | 오류 문제                     | arises
실패하다 | fail        | 업데이트 실험                 |
완료되다 | be completed | 업데이트 설치 번역 다운로드   |
시작되다 | start       | 업데이트 설치 실험 다운로드 번역 |
종료되다 | end         | 프로그램 회의 실험 연결       |
"""
