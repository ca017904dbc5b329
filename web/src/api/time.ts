/** Returns a time in UTC, with as many digits of the second as asked for. */
export function utc(ns: string, digits = 9): string {
  let nanos: bigint;
  try {
    nanos = BigInt(ns);
  } catch {
    return ns;
  }
  const second = 1_000_000_000n;
  const part = ((nanos % second) + second) % second;
  const date = new Date(Number((nanos - part) / 1_000_000n));
  const text = date.toISOString().slice(0, 19).replace('T', ' ');
  return digits === 0 ? text : `${text}.${part.toString().padStart(9, '0').slice(0, digits)}`;
}
