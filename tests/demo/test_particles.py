import pytest

from heedful.demo.korean_morphology import PARTICLES, attach

BY_HAND = """
은/는: 책·은 저·는 서울·은 의사·는 값·은 GPU·는 Transformer·는
이/가: 책·이 의사·가 서울·이 우리·가 Python·이 GPU·가 BERT·가 URL·이
을/를: 책·을 커피·를 파일·을 Transformer·를 Python·을 URL·을 GPU·를 저·를
과/와: 빵·과 우유·와 물·과
(으)로: 서울·로 집·으로 학교·로 연필·로 부산·으로 URL·로 Python·으로 GPU·로
(으)로부터: 친구·로부터 선생님·으로부터 서울·로부터
(으)로서: 학생·으로서 의사·로서
이에요/예요: 학생·이에요 의사·예요 물·이에요 고양이·예요
이야/야: 학생·이야 의사·야
(이)나: 빵·이나 우유·나 물·이나
(이)랑: 동생·이랑 언니·랑 딸·이랑
(이)라고: 학생·이라고 의사·라고
(이)라도: 물·이라도 차·라도
아/야: 민준·아 지우·야
에서: 집·에서 학교·에서
한테: 친구·한테 동생·한테
까지: 서울·까지
께서: 할머니·께서 선생님·께서
의: 친구·의 동생·의 누구·의 우리·의
"""
FUSED = [
    ("저", "이/가", "제가"), ("나", "이/가", "내가"), ("너", "이/가", "네가"), ("누구", "이/가", "누가"),
    ("저", "의", "제"), ("나", "의", "내"), ("너", "의", "네"), ("동생과 저", "이/가", "동생과 제가"),
    ("누나", "이/가", "누나가"), ("저", "도", "저도"), ("나", "한테", "나한테"), ("누구", "을/를", "누구를"),
]  # fmt: skip


@pytest.mark.parametrize("line", BY_HAND.strip().splitlines())
def test_particles_follow_the_last_sound(line: str) -> None:
    particle, _, forms = line.partition(": ")
    for form in forms.split():
        assert attach(form.split("·")[0], particle) == form.replace("·", "")


@pytest.mark.parametrize(("word", "particle", "form"), FUSED)
def test_pronouns_fuse_with_some_particles(word: str, particle: str, form: str) -> None:
    assert attach(word, particle) == form


def test_every_particle_can_be_attached_to_every_kind_of_word() -> None:
    for particle in PARTICLES:
        for word in ("나무", "서울", "책", "GPU"):
            assert attach(word, particle).startswith(word)


def test_an_unknown_particle_is_refused_with_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"unknown particle '으로' \(did you mean '\(으\)로'\?\); allowed: .*까지"):
        attach("집", "으로")
