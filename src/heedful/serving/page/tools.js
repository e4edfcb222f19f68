// Which tool serves which task. All translators share one: the languages choose among them.

import * as classify from "./classify.js";
import * as continues from "./continue.js";
import * as embed from "./embed.js";
import * as forecast from "./forecast.js";
import * as gaps from "./gaps.js";
import * as image from "./image.js";
import * as rewrite from "./rewrite.js";
import * as translate from "./translate.js";

const TOOLS = {
  translation: translate, language_model: continues, "text-to-text": rewrite, classification: classify,
  masked: gaps, embedding: embed, images: image, forecasting: forecast,
};

export function toolsOf(models) {
  const known = models.filter((model) => model.task in TOOLS);
  const groups = known.filter((model) => model.task !== "translation").map((model) => [model]);
  const translators = known.filter((model) => model.task === "translation");
  if (translators.length) groups.unshift(translators);
  return groups.map((group) => {
    const { task, name } = group[0];
    const alone = groups.filter((other) => other[0].task === task).length === 1;
    return {
      name,
      label: (speech) => [speech.say("span", task), !alone && ` · ${name}`],
      mount: (root, context) => TOOLS[task].mount(root, { ...context, models: group, model: group[0] }),
    };
  });
}
