// From four tokens of 512 numbers to queries, keys and values, to a 4 × 4 map, and back to four vectors.
import { equation, matrix, shares, signed } from "../../lens/drawing/matrix.js";
import { stepFigure } from "../../lens/drawing/stage.js";
import { number } from "../../lens/drawing/text.js";
import { gridOf, readout } from "../controls.js";

const HIGH = 18;

export function draw(root, data, message) {
  const facts = readout(message("hint"));
  const names = { x: "X", query: "Q", key: "K", value: "V", scores: "Q Kᵀ", weights: "softmax", output: "A V" };
  const both = new Set(["scores", "weights"]);

  function map(part, wide) {
    const source = gridOf(data.matrices[part]), square = both.has(part);
    const unit = square ? [30, 30] : [wide / source.columns, HIGH];
    const look = (row, column) => (facts.textContent =
      message(square ? "pair" : "cell", { name: names[part], row: data.tokens[row], column: square ? data.tokens[column] : column, value: number(source.at(row, column), 2) }));
    return matrix({
      name: names[part], source, unit, color: part === "weights" ? shares(source) : signed(source), watch: { look },
      rows: data.tokens, columns: square ? data.tokens : undefined,
    });
  }
  const step = (key, parts) => ({
    title: message(`${key}.title`), text: message(`${key}.text`),
    draw(room) {
      const wide = Math.min(parts.includes("x") ? 420 : parts.length > 2 && room > 480 ? 92 : 128, room - 82);
      return equation(parts.map((part, n) => [n && both.has(part) && room > 400 ? "→" : null, map(part, wide)]), room);
    },
  });
  root.append(stepFigure(Math.min(root.clientWidth, 800), [
    step("input", ["x"]), step("project", ["query", "key", "value"]), step("compare", ["scores", "weights"]), step("mix", ["output"]),
  ], message("name")), facts);
}
