// What the programs here have in common: they run a table of steps on a directory and print, as JSON, what each gave.
// Results that must differ between two directories (where they lie, when something happened) are made alike here and
// nowhere else.

/** @typedef {[name: string, run: () => unknown]} Step */

/**
 * Run the steps in order and return what each returned or threw.
 * @param {string} directory whose name is written as BASE
 * @param {Step[]} steps
 */
export async function outcomes(directory, steps) {
  const found = [];
  for (const [step, run] of steps) {
    try {
      found.push({ step, gave: plain(await run(), directory) });
    } catch (error) {
      found.push({ step, threw: described(error, directory) });
    }
  }
  return found;
}

/** @param {unknown} value */
export function print(value) {
  process.stdout.write(JSON.stringify(value, undefined, 1));
}

/** @param {unknown} error @param {string} directory */
function described(error, directory) {
  if (!(error instanceof Error)) return { thrown: String(error) };
  const code = 'code' in error ? error.code : undefined;
  return { class: error.constructor.name, code, message: plain(error.message, directory) };
}

/** @param {unknown} value @param {string} directory @returns {unknown} */
function plain(value, directory) {
  if (typeof value === 'string') return value.replaceAll(directory, 'BASE').replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME');
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'no time' : 'TIME';
  if (Buffer.isBuffer(value)) return { buffer: value.toString('base64') };
  if (Array.isArray(value)) return value.map((item) => plain(item, directory)).sort(byName);
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, plain(item, directory)]));
  }
  return value ?? null;
}

/** Listings have no order of their own. @param {any} one @param {any} other */
function byName(one, other) {
  const [a, b] = [one?.name ?? one, other?.name ?? other].map(String);
  return a < b ? -1 : Number(a > b);
}
