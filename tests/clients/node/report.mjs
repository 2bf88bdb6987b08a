// The programs in this directory run a list of steps and print the results as JSON. Some parts of a result always differ
// between two directories: the path and the time. Only this module replaces them with equal values.

/** @typedef {[name: string, run: () => unknown]} Step */

/**
 * Run the steps in order, and return the result or the error of each one.
 * @param {string} directory its path is replaced with BASE
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

/** Sort, because a listing has no defined order. @param {any} one @param {any} other */
function byName(one, other) {
  const [a, b] = [one?.name ?? one, other?.name ?? other].map(String);
  return a < b ? -1 : Number(a > b);
}
