/**
 * How many cases are tried, and from which seed: DIFFERENTIAL_CASES, or a few hundred, and
 * DIFFERENTIAL_SEED, or the one that vitest.config.ts makes up. The same seed gives the same cases.
 */
import fc from 'fast-check'

const CASES = Number(process.env.DIFFERENTIAL_CASES || 200)
const SEED = Number(process.env.DIFFERENTIAL_SEED)
if (!Number.isSafeInteger(CASES) || CASES < 1) throw new Error('DIFFERENTIAL_CASES must be a count')
if (!Number.isSafeInteger(SEED)) throw new Error('DIFFERENTIAL_SEED must be an integer')

/** Milliseconds that a test of so many cases may take. */
export const TIMEOUT = 30_000 + CASES * 200

/** Says from which seed the cases of a file come. */
export function tellSeed(): void {
  console.log(`DIFFERENTIAL_SEED=${SEED} DIFFERENTIAL_CASES=${CASES}`)
}

/** Holds a property against all cases, or against this share of them. */
export function hold<Values>(property: fc.IAsyncProperty<Values>, share = 1): Promise<void> {
  return fc.assert(property, { seed: SEED, numRuns: Math.ceil(CASES * share) })
}
