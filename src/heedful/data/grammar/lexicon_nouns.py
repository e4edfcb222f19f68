"""The nouns, as tables that a person can read and correct.

An entry is `한국어=english`; a star marks the demo's words. The English says how it behaves: `apple` is counted, `bread~`
is not, `pants+` is always plural, `the door` is the one at hand, `my hands` belongs to the subject, a capital makes a
name. Spaces inside an entry are written `_`. In the classes, (a word in brackets) is only the demo's; of two entries for
one word the last counts.
"""

# ruff: noqa: E501

PEOPLE = {
    "name": "민수*=Minsu:he 유나*=Yuna:she 현우*=Hyunwoo:he 수미*=Sumi:she 준호=Junho:he 미나=Mina:she 진수=Jinsu:he "
    "영희=Younghee:she 지호=Jiho:he 세라=Sera:she",
    "elder kin": "어머니*=mother:she 아버지*=father:he 할머니*=grandmother:she 할아버지*=grandfather:he 이모=aunt:she "
    "삼촌=uncle:he",
    "elder": "선생님*=teacher 교수님=professor 사장님=boss",
    "kin": "여동생*=younger_sister:she 남동생*=younger_brother:he 형=older_brother:he 누나=older_sister:she "
    "아들=son:he 딸=daughter:she 사촌=cousin 친구*=friend",
    "person": "학생*=student 의사*=doctor 아이*=child 간호사=nurse 경찰관=police_officer 요리사=cook 가수=singer "
    "배우=actor 화가=painter 손님=guest 직원=employee 기자=reporter 변호사=lawyer 이웃=neighbor 작가=writer "
    "운전사=driver 개발자=developer 연구원=researcher 관광객=tourist 군인=soldier 소방관=firefighter 과학자=scientist 농부=farmer",
    "animal": "고양이*=cat 개*=dog 토끼*=rabbit 새*=bird 강아지=puppy 곰=bear 여우=fox 쥐=mouse 원숭이=monkey 늑대=wolf "
    "오리=duck 닭=chicken 호랑이=tiger 사자=lion 코끼리=elephant 거북이=turtle",
}

PLACES = (
    "집*=house;at_home;home 학교*=school;at_school;to_school 회사*=company;at_work;to_work 도서관*=library 병원*=hospital "
    "공원*=park;in_the_park 시장*=market 식당*=restaurant 카페*=cafe 방*=room;in_the_room 부엌*=kitchen;in_the_kitchen "
    "서울*=Seoul 부산*=Busan 은행*=bank 서점*=bookstore 극장=theater 한국=Korea 미국=America 제주도=Jeju_Island;on_Jeju_Island "
    "일본=Japan 공항*=airport 기차역=train_station 호텔*=hotel 우체국=post_office 약국=pharmacy 가게=store 백화점=department_store "
    "교실*=classroom;in_the_classroom 사무실=office 바다=the_sea;at_the_sea 산=mountain;in_the_mountains 강=river "
    "수영장=swimming_pool 체육관=gym 미술관=art_museum 박물관=museum 동물원=zoo 정원=garden;in_the_garden "
    "거실*=living_room;in_the_living_room 화장실=bathroom;in_the_bathroom 도시=city;in_the_city 마을=village;in_the_village "
    "연구실=lab;in_the_lab 교회=church;at_church;to_church 대학교=university 버스_정류장=bus_stop 운동장=playground "
    "빵집=bakery 미용실=hair_salon 편의점=convenience_store 슈퍼마켓=supermarket 지하철역=subway_station "
    "경찰서=police_station 중국=China 프랑스=France 치과=dentist's_office 해변=beach;on_the_beach "
    "주차장=parking_lot;in_the_parking_lot"
)

THINGS = (
    # food and drink
    "사과*=apple 빵*=bread~ 밥*=rice~ 고기*=meat~ 과일*=fruit~ 케이크*=cake 계란*=egg 생선=fish~ 치즈*=cheese~ 피자*=pizza~ "
    "바나나*=banana 오렌지=orange 딸기=strawberry 포도=grapes+ 수박=watermelon~ 김치*=kimchi~ 국수=noodles+ 라면=ramen~ "
    "샌드위치*=sandwich 과자=cookie 사탕=candy~ 초콜릿=chocolate~ 샐러드=salad 수프=soup~ 아이스크림=ice_cream~ "
    "감자=potato 토마토=tomato 당근=carrot 채소=vegetables+ 닭고기=chicken~ 비빔밥=bibimbap~ 불고기=bulgogi~ "
    "김밥=gimbap~ 만두=dumplings+ 햄버거=hamburger 파스타=pasta~ 고구마=sweet_potato 양파=onion 버섯=mushroom "
    "떡볶이=tteokbokki~ 떡=rice_cake 두부=tofu~ 복숭아=peach 귤=tangerine 레몬=lemon 설탕=sugar~ "
    "소금=salt~ 녹차=green_tea~ 밥=meal "
    "물*=water~ 커피*=coffee~ 우유*=milk~ 차*=tea~ 주스*=juice~ 맥주=beer~ 와인=wine~ 콜라*=cola~ "
    "아침=breakfast! 점심=lunch! 저녁=dinner! 음식*=food~ "
    # reading, watching, listening
    "책*=book 신문*=newspaper 편지*=letter 잡지*=magazine 소설*=novel 이메일*=email 일기=my_diary 기사=article 문자=text_message 만화책=comic_book 엽서=postcard "
    "영화*=movie 텔레비전*=television! 드라마*=drama 뉴스*=the_news 공연=show 경기=game 음악*=music! 노래*=song 라디오*=the_radio "
    "그림*=picture 사진*=photo 강의=lecture 수업=class "
    # clothes
    "옷*=clothes+ 셔츠*=shirt 바지*=pants+ 치마*=skirt 코트*=coat 스웨터*=sweater 원피스=dress 신발*=shoes+ 양말*=socks+ "
    "운동화*=sneakers+ 구두=dress_shoes+ 부츠=boots+ 모자*=hat 안경*=glasses+ 선글라스*=sunglasses+ 장갑*=gloves+ 반지*=ring "
    "목걸이=necklace 시계*=watch 청바지=jeans+ 티셔츠=t-shirt 재킷=jacket 블라우스=blouse 슬리퍼=slippers+ 샌들=sandals+ "
    # at home
    "책상*=desk 의자*=chair 침대*=bed 탁자*=table 냉장고*=refrigerator 가방*=bag 상자*=box 컵*=cup 그릇=dishes+ 접시=plate "
    "칼=knife 문*=the_door 창문*=the_window 불*=the_light 꽃*=flower 나무*=tree 우산*=umbrella 열쇠*=key 지갑*=wallet "
    "휴대폰*=cell_phone 카메라*=camera 인형=doll 장난감=toy 거울=mirror 소파=sofa 책장=bookshelf 에어컨=the_air_conditioner "
    "세탁기=washing_machine 쓰레기=the_trash 빨래=the_laundry 설거지=the_dishes+ "
    "수건=towel 베개=pillow 이불=blanket 커튼=the_curtains+ 숟가락=spoon 젓가락=chopsticks+ 냄비=pot 가위=scissors+ "
    "지우개=eraser 볼펜=pen 달력=calendar 선풍기=the_fan 공=ball 노트북=laptop 프린터=printer 이어폰=earphones+ "
    # body and health
    "손*=my_hands+ 얼굴*=my_face 이=my_teeth+ 머리=my_hair 약=medicine~ 비타민=vitamins+ "
    # school and study
    "한국어*=Korean 영어*=English 일본어*=Japanese 중국어*=Chinese 수학*=math! 역사*=history! 과학*=science! "
    "피아노=the_piano 기타=the_guitar 바이올린=the_violin 축구*=soccer! 농구*=basketball! 야구*=baseball! 테니스=tennis! "
    "게임=game 숙제*=my_homework 시험=test 문제=problem 질문=question 답=the_answer 이름=name 단어=word 문장*=sentence 연필*=pencil "
    "공책=notebook 지도=map 종이=paper~ 사전=dictionary "
    # travel and money
    "버스*=bus 기차*=train 지하철*=the_subway 택시*=taxi 비행기=plane 자전거*=bicycle 자동차=car 오토바이=motorcycle 트럭=truck 표=ticket 여권=passport "
    "길=the_street 다리=bridge 건물=building 돈*=money~ 선물*=gift 카드=card 가격=the_price 시간*=time~ 약속=appointment "
    "계획=plan 생각=idea 휴가=day_off 주소=address 전화번호=phone_number 비밀=secret 소식=news~ 이야기=story "
    # software and learning machines
    "파일*=file 문서*=document 폴더=folder 컴퓨터*=computer 프로그램=program 앱=app 비밀번호=password 메시지=message 메뉴=menu "
    "서버=server 데이터=data~ 코드=code~ 오류=error 업데이트=update 계정=account 설정=the_settings+ 링크=link 버튼=button 화면=screen "
    "인터넷=the_Internet 연결=connection 설치=installation 다운로드=download 모델*=model 논문=research_paper 그래프=graph 실험=experiment 결과=result 체크포인트=checkpoint GPU=GPU "
    "Transformer=Transformer 토큰=token 손실=the_loss 정확도=the_accuracy 번역=translation 로봇=robot "
    # weather and the world
    "날씨*=the_weather 하늘=the_sky 별=star 달=the_moon 생일=birthday 회의=meeting 파티=party 일=my_work "
    "음료수=soft_drink 도움=help~ 휴식=rest 열=fever"
)

CLASSES = {
    "food": "사과 빵 (밥) 고기 과일 케이크 계란 생선 치즈 피자 바나나 오렌지 딸기 포도 수박 김치 국수 라면 샌드위치 과자 사탕 초콜릿 샐러드 수프 아이스크림 감자 토마토 당근 "
    "채소 닭고기 비빔밥 불고기 김밥 만두 햄버거 파스타 고구마 버섯 떡볶이 떡 두부 복숭아 귤",
    "meal": "아침 점심 저녁",
    "animal-food": "고기 (빵) 생선 과일 (밥) 사과 바나나 당근",
    "drink": "물 커피 우유 차 주스 맥주 와인 콜라 음료수 녹차",
    "animal-drink": "물 우유",
    "cooked": "빵 케이크 샌드위치 샐러드 수프 김치 음식 피자 국수 주스",
    "reading": "책 신문 편지 잡지 소설 이메일 기사 문자 논문 만화책 엽서",
    "writing": "편지 이메일 소설 기사 문장 이름 코드 논문 답 엽서",
    "watching": "영화 텔레비전 드라마 뉴스 공연 경기",
    "listening": "음악 노래 라디오 강의 뉴스 이야기",
    "clothes": "옷 셔츠 바지 치마 코트 스웨터 원피스 청바지 티셔츠 재킷 블라우스",
    "footwear": "신발 양말 운동화 구두 부츠 슬리퍼 샌들",
    "headwear": "모자 안경 선글라스",
    "handwear": "장갑 반지",
    "goods": "치즈 계란 사과 빵 고기 과일 케이크 우유 책 잡지 옷 셔츠 바지 코트 신발 모자 안경 장갑 반지 시계 가방 의자 책상 꽃 우산 휴대폰 카메라 컴퓨터 자전거 자동차 표 "
    "선물 연필 공책 인형 장난감 지갑 침대 냉장고 거울 소파 양말 운동화 목걸이 지도 치마 스웨터 컵 접시 책장 만화책 엽서 청바지 티셔츠 재킷 블라우스 슬리퍼 샌들 수건 "
    "베개 이불 숟가락 젓가락 냄비 가위 지우개 볼펜 달력 공 노트북 프린터 이어폰 오토바이 설탕 소금 레몬 양파 두부 버섯 귤 복숭아 고구마 김밥 떡",
    "sold": "계란 사과 빵 과일 꽃 책 옷 신발 가방 우산 표 케이크 모자 자전거 귤 복숭아 김밥 떡 양파 고구마 수건",
    "made": "빵 케이크 샌드위치 샐러드 수프 김치 의자 인형 로봇 앱 프로그램 모델 옷 상자 음식 장난감",
    "closable": "문 창문 상자 가방 커튼",
    "switch": "불 컴퓨터 텔레비전 에어컨 라디오 서버 화면 선풍기 노트북 프린터",
    "public-transport": "버스 기차 지하철 택시 비행기",
    "awaited": "버스 기차 택시",
    "studied": "한국어 영어 수학 일본어 중국어 역사 과학",
    "skill": "한국어 영어 수학 피아노 기타 일본어 중국어 역사 과학 바이올린 테니스",
    "languages": "한국어 영어 일본어 중국어",
    "ball-game": "축구 농구 야구",
    "struck": "피아노 기타",
    "liked": "사과 빵 고기 과일 케이크 커피 우유 차 주스 책 영화 음악 꽃 축구 한국어 영어 수학 초콜릿 피자 딸기 아이스크림 농구 소설 뉴스 김밥 떡볶이 복숭아 만화책 파스타",
    "given": "책 꽃 선물 돈 연필 편지 사진 우산 시계 반지 인형 표 지도 열쇠 사탕 볼펜 공 엽서",
    "received": "선물 편지 이메일 돈 메시지 문자 전화번호 표 사진 소식 엽서",
    "sent": "편지 이메일 선물 돈 사진 메시지 문자 파일 엽서",
    "borrowed": "책 돈 우산 연필 자전거 카메라 볼펜 지우개 가위 노트북 만화책 공",
    "washed": "손 얼굴 과일 (신발) (컵)",
    "rinsed": "그릇 자동차 신발 컵 접시 냄비 숟가락",
    "built": "집",
    "fixed": "컴퓨터 자동차 자전거 의자 시계 휴대폰 카메라 세탁기 문 노트북 프린터 오토바이 선풍기",
    "cleaned": "방 부엌 집 교실 거실 화장실 사무실 연구실",
    "lost": "지갑 열쇠 가방 휴대폰 우산 표 여권 돈 이어폰 지우개 볼펜",
    "drawn": "그림 꽃 나무 고양이 지도 그래프 새 하늘 달 별",
    "raised": "고양이 개 토끼 새 강아지",
    "owned": "고양이 개 돈 시간 자전거 시계 휴대폰 컴퓨터 카메라 우산 자동차 열쇠 질문 약속 계획 표 여권 시험 수업 토끼 가방 카드 휴가 열 노트북 오토바이 볼펜",
    "siblings": "여동생 남동생 형 누나 아들 딸 사촌 친구",
    "needed": "돈 시간 물 우산 컴퓨터 가방 의자 약 도움 여권 열쇠 사전 안경 연필 데이터 휴식 코트 가위 수건 설탕 소금 볼펜 이불 노트북",
    "in-places": "책상 의자 컴퓨터 꽃 (나무) 침대 소파 거울 냉장고 가방 상자 시계 책장 달력 프린터",
    "on-furniture": "책 가방 컵 사과 꽃 연필 모자 안경 시계 휴대폰 신문 편지 열쇠 컴퓨터 사진 지갑 케이크 접시 공책 카메라 잡지 상자 수건 볼펜 가위 지우개 달력 노트북 만화책 숟가락 "
    "이어폰",
    "furniture": "책상 의자 탁자 침대 소파 상자",
    "container": "가방 상자 냉장고 지갑",
    "kept-cold": "우유 물 주스 과일 고기 케이크 계란 맥주 사과 치즈 두부 복숭아 레몬 버섯 양파",
    "in-a-bag": "책 휴대폰 우산 연필 돈 안경 지갑 열쇠 공책 카메라 사진 표 볼펜 지우개 노트북 이어폰 만화책 수건",
    "file": "파일 문서 폴더 사진 메시지 계정 데이터",
    "saved": "파일 문서 사진 설정 데이터 메시지 결과 체크포인트",
    "installed": "프로그램 앱 업데이트",
    "entered": "비밀번호 이름 주소 전화번호 메시지",
    "checked": "링크 이메일 메시지 주소 비밀번호 결과 설정 계정 오류",
    "analyzed": "데이터 결과 문제 오류",
    "trained": "모델 Transformer",
    "translated": "문장 책 소설 논문 편지 기사",
    "explained": "문제 단어 문장 계획 결과 코드 생각",
    "understood": "문장 질문 문제 이야기 단어 논문 코드 강의",
    "known": "답 이름 주소 비밀번호 비밀 전화번호 단어",
    "jobs": "학생 의사 선생님 간호사 경찰관 요리사 가수 배우 화가 기자 변호사 작가 개발자 연구원 운전사 군인 소방관 과학자 농부",
    "big-things": "집 학교 회사 도서관 병원 공원 시장 식당 카페 방 부엌 호텔 공항 도시 건물 교실 정원 가게 마을 책상 의자 가방 상자 침대 나무 냉장고 모자 코트 우산 문 창문 화면 "
    "동물원 주차장 슈퍼마켓 공 냄비 수건 다리",
    "priced": "가방 코트 시계 안경 휴대폰 컴퓨터 의자 책상 신발 모자 반지 자전거 꽃 옷 과일 고기 케이크 커피 표 카메라 자동차 셔츠 바지 책 침대 청바지 재킷 노트북 블라우스 "
    "프린터 오토바이 복숭아 이불",
    "tasty": "사과 빵 고기 과일 케이크 커피 우유 차 주스 음식 샌드위치 피자 김치 국수 딸기 수박 포도 비빔밥 불고기 아이스크림 김밥 만두 햄버거 파스타 떡볶이 복숭아 귤 떡",
    "hot-or-cold": "물 커피 차 우유 음식 수프 녹차",
    "interesting": "책 영화 (노래) 소설 수업 드라마 이야기 게임 강의 경기 잡지 뉴스 역사 과학 박물관 만화책",
    "difficult": "시험 문제 숙제 수학 한국어 영어 질문 책 일본어 중국어 과학 수업 논문",
    "weighed": "가방 상자 책상 의자 책 침대 컴퓨터 카메라 노트북 냄비 이불",
    "pretty": "꽃 옷 가방 모자 셔츠 치마 반지 인형 정원 원피스 목걸이 시계 코트 블라우스 재킷 엽서 커튼",
    "long": "바지 치마 연필 다리 강 편지 영화 코트 소설 문장 길",
    "high": "산 가격 정확도 손실",
    "low": "가격 정확도 손실",
    "fast": "기차 버스 자동차 비행기 컴퓨터 인터넷 모델 서버 자전거 지하철 프로그램 연결 노트북 오토바이 프린터 트럭",
    "clean": "방 집 부엌 학교 식당 카페 화장실 공원 옷 물 거실 교실 호텔 길 강 바다 해변 수건 건물",
    "quiet": "도서관 방 카페 공원 교실 사무실 집 마을 식당 거실 해변",
    "bright": "방 교실 화면 거실 부엌 사무실 달 하늘 별 길",
    "near": "버스_정류장 학교 회사 병원 시장 공원 집 은행 공항 기차역 호텔 바다 우체국 약국 편의점 슈퍼마켓 지하철역 경찰서 치과 해변 주차장 다리",
    "good": "날씨 책 음악 컴퓨터 영화 노래 모델 결과 생각 호텔 계획 카메라",
    "important": "문제 시험 회의 데이터 약속 약",
    "famous": "가수 배우 화가 작가 식당 노래 영화 소설 박물관 건물 다리",
    "kind": "선생님 의사 친구 학생 간호사 직원 여동생 남동생 이웃 아이 경찰관",
    "colored": "꽃 모자 셔츠 가방 우산 신발 코트 자동차 치마 옷 티셔츠 재킷 수건 공 블라우스 커튼",
    "met": "민수 유나 현우 수미 친구 학생 의사 준호 미나 진수 영희 지호 세라 여동생 남동생 가수 배우 기자 변호사 이웃 손님 사촌",
    "memorized": "단어 문장 노래 전화번호",
    "prepared": "음식 점심 저녁 선물",
    "executed": "프로그램 앱 코드",
    "used": "컴퓨터 휴대폰 카메라 사전 칼 GPU 인터넷 노트북 가위 프린터 수건 젓가락 이어폰",
    "thrown": "쓰레기 종이 상자 신문",
    "disliked": "고기 생선 당근 양파 버섯 우유 커피 맥주 수학 과학 쥐 두부 토마토",
    "seen": "고양이 개 토끼 새 곰 여우 원숭이 별 쥐 달 (하늘) 호랑이 사자 코끼리 거북이",
    "dear": "민수 유나 현우 수미 친구 여동생 남동생 준호 미나 진수 영희 지호 세라 아들 딸",
    "machines": "모델 Transformer 프로그램",
    "predicted": "토큰 단어 결과 가격",
    "generated": "문장 토큰 답 코드 그래프",
    "calculated": "손실 정확도 가격 결과",
    "clicked": "링크 메뉴",
    "cut": "종이 케이크 양파 당근 사과 고기 버섯 두부",
    "baked": "빵 케이크 감자 고구마",
    "laundered": "옷 양말 운동화 수건 이불 셔츠 바지 청바지",
    "copied": "파일 문서 코드 폴더 링크",
    "practiced": "피아노 기타 바이올린 한국어 영어 테니스",
    "forgotten": "비밀번호 이름 전화번호 주소 약속",
    "spicy": "김치 라면 떡볶이 국수 음식 수프",
    "sweet": "사과 딸기 수박 포도 케이크 복숭아 귤 초콜릿 아이스크림",
    "salty": "수프 국수 음식 라면 파스타 치즈",
    "roomy": "방 집 공원 부엌 교실 거실 사무실 주차장 가게 정원",
    "thick": "책 코트 사전 이불 옷 재킷 수건 종이",
    "cute": "인형 고양이 강아지 토끼 아이 새 개",
    "comfortable": "의자 침대 신발 소파 운동화 베개 옷 바지 청바지 슬리퍼",
    "scary": "영화 이야기 호랑이 사자 곰 소설",
}

COUNTERS = {
    "개": "사과 계란 샌드위치 바나나 오렌지 감자 토마토 당근 과자 의자 책상 가방 상자 모자 시계 우산 컵 접시 인형 장난감 반지 열쇠 문제 파일 햄버거 고구마 양파 버섯 복숭아 귤 레몬 숟가락 지우개 공 베개 냄비",
    "권": "책 잡지 소설 공책 사전 만화책",
    "장": "사진 표 그림 지도 카드 셔츠 엽서 수건 티셔츠",
    "마리": "고양이 개 토끼 새 강아지",
    "명": "학생 친구 의사 아이 손님 간호사 여동생 남동생",
    "송이": "꽃",
    "대": "자전거 컴퓨터 자동차 카메라 휴대폰 노트북",
    "자루": "연필 볼펜",
    "잔": "물 커피 우유 차 주스 녹차",
    "통": "편지",
    "그루": "나무",
    "편": "영화",
}
