// The explorer's filter: words, and comparisons such as `attention.name=no_scale test/prefix/bleu>10 state!=failed`.

const TERM = /(?:[^\s"]|"[^"]*")+/g;
const COMPARISON = /^(.+?)(!=|<=|>=|=|<|>)(.*)$/s;

/** What a run has under a name: its id, state, updates or alarms, a setting, or a final number. */
export function valueOf(page, run, key) {
  switch (key) {
    case "id":
    case "state":
    case "step":
      return run[key];
    case "alarms":
      return run.alarms.length;
    default:
      return key in run.config
        ? run.config[key]
        : key in page.common && run.state !== "unreadable"
          ? page.common[key]
          : run.results[key];
  }
}

/** Every name that a run may have something under. */
export function keysOf(page) {
  const found = new Set(["id", "state", "step", "alarms", ...Object.keys(page.common)]);
  for (const run of page.runs)
    for (const key of [...Object.keys(run.config), ...Object.keys(run.results)]) found.add(key);
  return [...found];
}

/** {keep(run), problem}: which runs a query lets through, and what of it makes no sense, or "". */
export function parse(text, page) {
  const keys = keysOf(page);
  const tests = [];
  for (const term of text.match(TERM) ?? []) {
    const parts = term.match(COMPARISON);
    if (!parts) {
      tests.push(word(bare(term)));
      continue;
    }
    const key = resolve(parts[1], keys);
    if (key === null)
      return { keep: () => true, problem: `No run has ‘${parts[1]}’, or several names end in it.` };
    tests.push(comparison(key, parts[2], bare(parts[3]), page));
  }
  return { keep: (run) => tests.every((test) => test(run)), problem: "" };
}

/** The name itself, or the only one that ends in it, so that `bleu` may stand for test/prefix/bleu. */
function resolve(name, keys) {
  if (keys.includes(name)) return name;
  const ending = keys.filter((key) => key.endsWith(`.${name}`) || key.endsWith(`/${name}`));
  return ending.length === 1 ? ending[0] : null;
}

function comparison(key, sign, text, page) {
  const wanted = text !== "" && !Number.isNaN(Number(text)) ? Number(text) : null;
  return (run) => {
    const value = valueOf(page, run, key);
    if (sign === "=" || sign === "!=") {
      const equal =
        typeof value === "number" && wanted !== null ? value === wanted : String(value ?? "") === text;
      return equal === (sign === "=");
    }
    if (typeof value !== "number" || wanted === null) return false;
    return { "<": value < wanted, "<=": value <= wanted, ">": value > wanted, ">=": value >= wanted }[sign];
  };
}

function word(text) {
  const wanted = text.toLowerCase();
  return (run) =>
    [run.id, run.state, ...Object.values(run.config).map(String)].some((value) =>
      value.toLowerCase().includes(wanted),
    );
}

function bare(text) {
  return text.replaceAll('"', "");
}
