// Every view, in the order of the page. A view shows itself where `fits(doc)` says so.

import * as tokens from "./views/tokens.js";
import * as heads from "./views/heads.js";
import * as head from "./views/head.js";
import * as compare from "./views/compare.js";
import * as cross from "./views/cross.js";
import * as writing from "./views/writing.js";
import * as next from "./views/next.js";
import * as beams from "./views/beams.js";
import * as alignment from "./views/alignment.js";
import * as numbers from "./views/numbers.js";
import * as layer from "./views/layer.js";
import * as positions from "./views/positions.js";
import * as image from "./views/image.js";
import * as series from "./views/series.js";
import * as classes from "./views/classes.js";

export const views = [
  image, series, classes, tokens, heads, head, compare, cross, writing, next, beams, alignment, numbers, layer, positions,
];
