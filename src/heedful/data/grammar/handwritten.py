"""One hundred sentences written by hand, within the demo's words and apart from the grammar: kept apart and reported.

After the Korean stand the accepted English answers, the first as the rules of the corpus would have it.
"""

# ruff: noqa: E501
from __future__ import annotations

_TABLE = """
민수가 유나를 좋아해요. | Minsu likes Yuna.
유나를 민수가 좋아해요. | Minsu likes Yuna.
민수를 유나가 좋아해요. | Yuna likes Minsu.
고양이가 개를 쫓았어요. | The cat chased a dog. | The cat chased the dog.
고양이를 개가 쫓았어요. | The dog chased a cat. | The dog chased the cat.
저는 매일 아침에 커피를 마셔요. | I drink coffee in the morning every day. | I drink coffee every morning. | I drink coffee every day in the morning.
어제 시장에서 사과를 샀어요. | I bought an apple at the market yesterday. | I bought apples at the market yesterday. | I bought some apples at the market yesterday. | I bought the apple at the market yesterday. | Yesterday, I bought an apple at the market.
내일 친구를 만날 거예요. | I will meet my friend tomorrow. | I will meet a friend tomorrow. | Tomorrow, I will meet my friend. | I'll meet my friend tomorrow.
오늘은 추워요. | It is cold today. | Today is cold. | It's cold today.
밥 먹었어요? | Did you eat rice? | Did you eat? | Have you eaten?
뭐 먹고 싶어요? | What do you want to eat?
어디에 살아요? | Where do you live?
유나는 일찍 학교에 갔어요. | Yuna went to school early.
할머니께서 빵을 드셨어요. | My grandmother ate some bread. | My grandmother ate bread. | My grandmother ate the bread. | Grandmother ate some bread.
할아버지께서는 방에서 주무세요. | My grandfather sleeps in the room. | My grandfather is sleeping in the room.
선생님께서 집에 계세요. | The teacher is at home. | My teacher is at home.
책상 위에 연필이 있어요. | There is a pencil on the desk. | A pencil is on the desk.
가방 안에 우산이 없어요. | There is no umbrella in the bag. | There isn't an umbrella in the bag.
저는 여동생이 있어요. | I have a younger sister.
현우는 돈이 없어요. | Hyunwoo doesn't have money. | Hyunwoo has no money. | Hyunwoo does not have money. | Hyunwoo doesn't have any money.
시간이 있어요? | Do you have time?
저는 학생이에요. | I am a student. | I'm a student.
이것은 제 가방이 아니에요. | This isn't my bag. | This is not my bag.
현우는 의사가 아니에요. | Hyunwoo isn't a doctor. | Hyunwoo is not a doctor.
비가 와서 집에 있었어요. | It rained, so I was at home. | It rained, so I stayed home. | It rained, so I stayed at home. | It was raining, so I was at home. | It was raining, so I stayed home.
배고파서 샌드위치를 만들었어요. | I was hungry, so I made a sandwich. | I was hungry, so I made the sandwich. | I was hungry, so I made sandwiches.
피곤해서 일찍 잤어요. | I was tired, so I slept early. | I was tired, so I went to bed early.
바빠서 운동 못 했어요. | I was busy, so I couldn't exercise. | I was busy, so I could not exercise.
이 가방은 비싸지만 예뻐요. | This bag is expensive but pretty. | This bag is expensive, but it is pretty.
방이 작지만 깨끗해요. | The room is small but clean.
저는 커피를 좋아하지만 어머니께서는 차를 좋아하세요. | I like coffee, but my mother likes tea.
숙제를 하고 텔레비전을 봤어요. | I did my homework and watched television. | I did my homework and watched TV. | I did homework and watched television.
손을 씻고 밥을 드세요. | Wash your hands and eat some rice. | Wash your hands and eat. | Wash your hands and eat rice.
지금 음악을 듣고 있어요. | I am listening to music now. | I'm listening to music now.
민수는 지금 뭐 해요? | What is Minsu doing now?
누가 창문을 열었어요? | Who opened the window?
왜 울었어요? | Why did you cry?
언제 서울에 왔어요? | When did you come to Seoul?
어디에서 한국어를 배웠어요? | Where did you learn Korean?
무엇을 마시고 싶으십니까? | What do you want to drink? | What would you like to drink?
문을 닫으세요. | Close the door. | Please close the door.
천천히 걸으세요. | Walk slowly. | Please walk slowly.
조용히 하세요. | Be quiet. | Please be quiet.
사과 세 개를 샀어요. | I bought three apples.
고양이 두 마리가 있어요. | I have two cats. | There are two cats.
커피 한 잔을 마셨어요. | I drank one cup of coffee. | I drank a cup of coffee.
책 다섯 권을 읽었습니다. | I read five books.
일곱 시에 일어났어요. | I got up at 7 o'clock. | I got up at seven o'clock. | I woke up at 7 o'clock. | I got up at 7.
세 시 반에 만나요. | I meet at 3:30. | See you at 3:30. | Let's meet at 3:30. | I am meeting at 3:30.
저는 수영 못 해요. | I can't swim. | I cannot swim.
한국어를 잘 가르칠 수 있어요. | I can teach Korean well.
아버지께서는 회사에서 일하십니다. | My father works at work. | My father works at a company. | My father works at the company.
어머니께서 부엌에서 케이크를 만들고 계세요. | My mother is making a cake in the kitchen. | My mother is making the cake in the kitchen. | My mother is making cake in the kitchen.
저는 지하철을 타고 회사에 가요. | I take the subway and go to work. | I take the subway to work. | I go to work by subway.
날씨가 좋아요. | The weather is good. | The weather is nice.
눈이 많이 왔어요. | It snowed a lot.
영화가 재미있었어? | Was the movie interesting?
나는 어제 회사에 안 갔어. | I didn't go to work yesterday. | I did not go to work yesterday. | Yesterday, I didn't go to work.
너는 어디에 있어? | Where are you?
현우는 혼자 버스를 기다렸어. | Hyunwoo waited for a bus alone. | Hyunwoo waited for the bus alone. | Hyunwoo waited alone for the bus.
친구와 공원에서 축구를 했습니다. | I played soccer in the park with my friend. | I played soccer with my friend in the park.
도서관은 조용합니다. | The library is quiet.
학생이 책을 빌리고 싶어 합니다. | The student wants to borrow a book. | The student wants to borrow the book. | The student wants to borrow books.
파일을 저장할 수 없습니다. | The file cannot be saved. | Cannot save the file. | The file can't be saved. | Could not save the file.
사진을 저장했습니다. | The photo has been saved. | The photo was saved. | I saved the photo.
아이가 웃고 있어요. | The child is laughing. | The child is smiling.
개가 물을 마시지 않아요. | The dog doesn't drink water. | The dog isn't drinking water. | The dog does not drink water.
새가 나무 위에 있어요. | The bird is on the tree. | There is a bird on the tree. | The bird is in the tree. | A bird is in the tree.
저는 모자를 안 써요. | I don't wear hats. | I don't wear a hat. | I do not wear hats.
수미가 빨간 코트를 입고 있어요. | Sumi is wearing a red coat. | Sumi is wearing the red coat.
남동생은 안경을 써요. | My younger brother wears glasses.
비싼 신발을 사지 않을 거예요. | I won't buy expensive shoes. | I will not buy expensive shoes.
작은 상자를 열었어요. | I opened the small box. | I opened a small box.
이 책은 어려워요? | Is this book difficult? | Is this book hard?
영어가 한국어보다 쉬워요. | English is easier than Korean.
유나에게 꽃을 줬습니다. | I gave a flower to Yuna. | I gave flowers to Yuna. | I gave Yuna a flower. | I gave Yuna flowers. | I gave the flower to Yuna.
민수가 유나한테 책을 줬어요. | Minsu gave a book to Yuna. | Minsu gave Yuna a book. | Minsu gave the book to Yuna.
누구를 만났어요? | Who did you meet? | Whom did you meet?
친구한테 편지를 쓰고 있어요. | I am writing a letter to my friend. | I'm writing a letter to my friend. | I am writing to my friend.
토요일에 부산에 갈 거예요? | Will you go to Busan on Saturday? | Are you going to Busan on Saturday?
은행은 어디에 있어요? | Where is the bank?
선생님께서 학생을 부르셨어요. | The teacher called a student. | The teacher called the student.
저는 라디오를 자주 들어요. | I often listen to the radio.
의사는 항상 바빠요. | The doctor is always busy.
할머니께서는 꽃을 좋아하세요. | My grandmother likes flowers.
아버지께서 컴퓨터를 고치셨어요. | My father fixed the computer. | My father fixed a computer.
어제 잘 잤어? | Did you sleep well yesterday? | Did you sleep well last night?
물이 뜨거워서 못 마셨어요. | The water was hot, so I couldn't drink it. | The water was hot, so I could not drink it.
지난주에 호텔에서 일했어요. | I worked at the hotel last week. | Last week, I worked at the hotel. | I worked at a hotel last week.
불을 끄고 자요. | I turn off the light and sleep. | Turn off the light and sleep.
자전거를 잘 타고 싶어요. | I want to ride a bicycle well. | I want to ride bicycles well.
창문을 여는 아이가 누구예요? | Who is the child who is opening the window? | Who is the child opening the window?
제 고양이는 우유를 좋아해요. | My cat likes milk.
아침에 우유를 마시고 학교에 갔습니다. | I drank some milk and went to school in the morning. | In the morning, I drank milk and went to school. | I drank milk in the morning and went to school. | I drank some milk in the morning and went to school.
더우니까 문을 여세요. | Since it is hot, open the door. | It is hot, so open the door. | Because it is hot, open the door. | It's hot, so please open the door.
문장을 다시 번역하십시오. | Translate a sentence again. | Translate the sentence again. | Please translate the sentence again.
모델이 빨라요. | The model is fast.
과일이 맛있었지만 비쌌어요. | The fruit was delicious but expensive. | The fruit was delicious, but it was expensive.
저는 혼자 집에 왔어요. | I came home alone.
우유 두 잔을 마시고 잤어. | I drank two cups of milk and slept. | I drank two glasses of milk and slept. | I drank two cups of milk and went to sleep.
"""

HANDWRITTEN: tuple[tuple[str, tuple[str, ...]], ...] = tuple(
    (korean, tuple(answers))
    for korean, *answers in ([cell.strip() for cell in line.split("|")] for line in _TABLE.strip().splitlines())
)
"""(korean, accepted English answers)."""
