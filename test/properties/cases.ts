/**
 * The number of cases, and their seed. DIFFERENTIAL_CASES defaults to a few hundred, and
 * DIFFERENTIAL_SEED to the one that vitest.config.ts chooses. Equal seeds produce equal cases.
 */
import fc from 'fast-check'

const CASES = Number(process.env.DIFFERENTIAL_CASES || 200)
const SEED = Number(process.env.DIFFERENTIAL_SEED)
if (!Number.isSafeInteger(CASES) || CASES < 1) throw new Error('DIFFERENTIAL_CASES must be a count')
if (!Number.isSafeInteger(SEED)) throw new Error('DIFFERENTIAL_SEED must be an integer')

/** The timeout in milliseconds of a test with this number of cases. */
export const TIMEOUT = 30_000 + CASES * 200

/** Prints the seed of the cases of a file. */
export function tellSeed(): void {
  console.log(`DIFFERENTIAL_SEED=${SEED} DIFFERENTIAL_CASES=${CASES}`)
}

/** Checks a property with all cases, or with this share of them. */
export function hold<Values>(property: fc.IAsyncProperty<Values>, share = 1): Promise<void> {
  return fc.assert(property, { seed: SEED, numRuns: Math.ceil(CASES * share) })
}
