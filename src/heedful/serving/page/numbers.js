// Numbers from what people paste: a list, a column, or a table with or without names.

const NONE = new Set(["", "na", "nan", "null", "none", "-"]);

function value(cell) {
  const text = cell.trim().replace(/^"|"$/g, "");
  if (NONE.has(text.toLowerCase())) return null;
  const number = Number(text);
  return Number.isFinite(number) ? number : undefined; // a word
}

const cellsOf = (line) => line.split(line.includes("\t") ? "\t" : line.includes(";") ? ";" : ",");
const isData = (row) => row.some((cell) => typeof value(cell) === "number");

// {series, column, name}: series is what the model reads, column the numbers to draw; null where there are none.
export function numbersOf(text, columns) {
  const lines = text.split("\n").filter((line) => line.trim());
  const flat = text.trim().split(/[\s,;]+/).map(value);
  const list = lines.length === 1 || lines.every((line) => cellsOf(line).length === 1);
  if (list && columns.length < 2) {
    const rest = flat.slice(flat.findIndex((one) => typeof one === "number")); // a name may stand above
    if (!rest.length || rest.includes(undefined)) return null;
    return { series: rest, column: rest, name: columns[0] ?? "" };
  }
  if (!lines.length) return null;
  const table = lines.map(cellsOf);
  const names = isData(table[0]) ? null : table.shift().map((cell) => cell.trim().replace(/^"|"$/g, ""));
  const rows = table.map((row) => row.map(value));
  const places = wanted(names, rows, columns);
  if (!places || !rows.length) return null;
  const found = rows.map((row) => places.map((place) => (row[place] === undefined ? null : row[place])));
  const single = places.length === 1 && columns.length < 2;
  return {
    series: single ? found.map(([one]) => one) : found,
    column: found.map(([one]) => one),
    name: names?.[places[0]] ?? columns[0] ?? "",
  };
}

// The model's columns by name; else, of a table that has none of them, those with numbers, from the right.
function wanted(names, rows, columns) {
  const lower = names?.map((name) => name.toLowerCase()) ?? [];
  const named = columns.map((column) => lower.indexOf(column.toLowerCase()));
  if (columns.length && named.every((place) => place >= 0)) return named;
  const numeric = (rows[0] ?? []).map((_, place) => place).filter((place) => rows.every((row) => row[place] !== undefined));
  const count = Math.max(1, columns.length);
  return numeric.length >= count ? numeric.slice(-count) : null;
}
