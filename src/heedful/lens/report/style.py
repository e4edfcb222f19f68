"""How the page looks: one quiet column, light or dark as the reader's screen asks, and on paper always light."""

from __future__ import annotations

from . import palette

LAYOUT = """
*{box-sizing:border-box}
html{color-scheme:light dark;-webkit-text-size-adjust:100%;scroll-behavior:smooth}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.65 system-ui,-apple-system,"Segoe UI",Roboto,
"Noto Sans",var(--korean),sans-serif;font-variant-numeric:tabular-nums}
:root{--korean:"Apple SD Gothic Neo","Malgun Gothic","Noto Sans KR","Noto Sans CJK KR",NanumGothic}
:lang(ko){word-break:keep-all}
body{overflow-wrap:break-word}p,dd,h1{overflow-wrap:anywhere}
main,header,footer,nav{max-width:58rem;margin:0 auto;padding:0 1.5rem}
header{padding-top:4.5rem}
h1{font-size:clamp(1.7rem,5vw,2.5rem);line-height:1.2;letter-spacing:-.02em;font-weight:650;margin:0 0 1.8rem}
h2{font-size:1.3rem;letter-spacing:-.01em;font-weight:620;margin:0 0 1.2rem;padding-top:1.6rem;
border-top:1px solid var(--rule)}
h3{font-size:1rem;font-weight:600;margin:2rem 0 .7rem}
section{margin:3.2rem 0;scroll-margin-top:1rem}
p{margin:.6rem 0;max-width:44rem}
a{color:inherit}
.soft,figcaption,.note{color:var(--soft);font-size:.875rem}
nav ul{display:flex;flex-wrap:wrap;gap:.35rem 1.2rem;list-style:none;margin:2.2rem 0 0;padding:0;font-size:.9rem}
nav a{color:var(--soft);text-decoration:none;border-bottom:1px solid var(--rule);padding-bottom:1px}
nav a:hover{color:var(--ink)}
dl.signatures{margin:0;font-size:.875rem}dl.signatures dd{margin:0 0 .6rem}
.scale svg{margin:0 .4rem}
dl.facts{display:grid;grid-template-columns:repeat(auto-fill,minmax(11rem,1fr));gap:1.1rem 2rem;margin:0}
dl.facts dt{color:var(--soft);font-size:.8125rem}
dl.facts dd{margin:0;font-size:1.05rem;font-weight:600;line-height:1.4}
dl.facts dd.mono{font-size:.75rem;font-weight:400;padding-top:.2rem}
.scroll{overflow-x:auto;-webkit-overflow-scrolling:touch}
table{border-collapse:collapse;width:100%;font-size:.9375rem}
caption{text-align:left;color:var(--soft);font-size:.875rem;padding-bottom:.4rem}
th,td{text-align:left;vertical-align:top;padding:.5rem 1rem .5rem 0;border-bottom:1px solid var(--rule)}
thead th{color:var(--soft);font-size:.8125rem;font-weight:500;white-space:nowrap}
tbody th{font-weight:500}
th:last-child,td:last-child{padding-right:0}
.number{text-align:right;white-space:nowrap}
.wide{min-width:5.5rem;width:50%}
.mono{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:.75rem;color:var(--soft);
word-break:break-all}
figure{margin:0 0 1.6rem;break-inside:avoid}
figcaption{margin-bottom:.35rem}
figcaption b{color:var(--ink);font-weight:600;margin-right:.8rem}
svg{display:block;max-width:none;overflow:visible}
svg text{fill:var(--soft);font-size:11px}
.charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(19rem,100%),1fr));gap:1rem 2.5rem}
.fluid{width:100%;height:auto}
.single{max-width:30rem}
.grid{stroke:var(--rule);stroke-width:1}
.line{fill:none;stroke:var(--hue);stroke-width:1.8;stroke-linejoin:round;stroke-linecap:round}
.dot{fill:var(--hue)}
.key{display:inline-block;white-space:nowrap;margin-right:1rem}
.key svg{display:inline-block;vertical-align:middle;margin-right:.4rem}
.bar{width:100%;height:.7rem;margin-top:.45rem;overflow:hidden;border-radius:2px}
.bar .track{fill:var(--rule)}
.bar .fill{fill:var(--c0)}
.ground{fill:var(--h0)}
svg text.word{fill:var(--ink);font-size:13px}
.heads{display:flex;flex-wrap:wrap;gap:1rem 1.4rem;margin-bottom:2.6rem}
.heads figure{margin:0}
.pixels{image-rendering:pixelated}
.veil{fill:var(--paper)}
.sample{padding:.9rem 0;border-bottom:1px solid var(--rule);break-inside:avoid}
.sample dl{display:grid;grid-template-columns:6rem 1fr;gap:.15rem 1rem;margin:0}
.sample dt{color:var(--soft);font-size:.8125rem;line-height:1.85}
.sample dd{margin:0;white-space:pre-wrap}
.sample .soft{font-size:.8125rem}
del{text-decoration:underline dashed var(--c1);text-underline-offset:.25em;text-decoration-thickness:2px}
ins{text-decoration:underline solid var(--c0);text-underline-offset:.25em;text-decoration-thickness:2px;
background:var(--tint)}
footer{color:var(--soft);font-size:.8125rem;padding-top:1rem;padding-bottom:4rem}
@media (max-width:32rem){header{padding-top:2.2rem}main,header,footer,nav{padding-left:1.1rem;padding-right:1.1rem}
.sample dl{grid-template-columns:1fr;gap:0}.sample dd{margin-bottom:.35rem}th,td{padding-right:.8rem}
.wide{width:30%;min-width:3.5rem}
dl.facts{grid-template-columns:1fr 1fr;gap:.9rem 1.2rem}}
@media print{nav{display:none}body{font-size:10pt}header{padding-top:0}section{margin:1.6rem 0}
main,header,footer{max-width:none;padding:0}.scroll{overflow:visible}.scroll>svg{max-width:100%;height:auto}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}h2,h3,thead{break-after:avoid}tr{break-inside:avoid}}
"""
LIGHT = "--paper:#fdfcf9;--ink:#23262b;--soft:#676b71;--rule:#e4e2da;--tint:#eaf1f6;"
DARK = "--paper:#16181c;--ink:#e6e4de;--soft:#9b9ea5;--rule:#31343b;--tint:#223040;"


def stylesheet() -> str:
    """Everything inside the page's style element."""
    light = LIGHT + palette.variables(palette.ON_LIGHT, palette.LINES_ON_LIGHT)
    dark = DARK + palette.variables(palette.ON_DARK, palette.LINES_ON_DARK)
    return (
        f":root{{{light}}}@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}{LAYOUT}{palette.classes()}"
    )
