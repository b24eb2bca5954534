// Numbers as people read them.

/** Significant digits, by default four; the minus is a minus. */
export function short(value, digits = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (typeof value !== "number") return String(value);
  if (Number.isInteger(value) && Math.abs(value) < 1e6)
    return value.toLocaleString("en-US").replace("-", "−");
  const size = Math.abs(value);
  const text =
    size >= 1e5 || size < 1e-3 ? value.toExponential(2) : String(Number(value.toPrecision(digits)));
  return text.replace("-", "−");
}

/** As `short`, with its zeros at the end: numbers of one column have as many digits. */
export function even(value) {
  const size = Math.abs(value);
  return Number.isInteger(value) || size >= 1e4 || size < 1e-3
    ? short(value)
    : value.toPrecision(4).replace("-", "−");
}

/** A hyphen before a digit as a minus sign. */
export function minus(text) {
  return text.replace(/-(?=\d)/g, "−");
}

export function mean(values) {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Mean, sd and half of the 95% t-interval over values; `t` holds quantiles by degrees of freedom from 1. No interval for one. */
export function estimate(values, t) {
  const n = values.length;
  const middle = mean(values);
  if (n < 2) return { n, mean: middle, sd: null, half: null };
  const sd = Math.sqrt(values.reduce((sum, value) => sum + (value - middle) ** 2, 0) / (n - 1));
  const quantile = t[Math.min(n - 1, t.length) - 1]; // beyond the table: its last, which is wider
  return { n, mean: middle, sd, half: (quantile * sd) / Math.sqrt(n) };
}
