/** The bisection of items that fail together. */
import { expect, test } from 'vitest'
import { bisect } from '../../db/bisect.ts'

const REJECTED = new Error('A row was rejected')
const UNAVAILABLE = new Error('The database is away')

/** Searches items, of which `isBad` says by the number of attempts so far which ones fail. */
async function search(isBad: (item: number, attempts: number) => boolean, items: number[]) {
  const run: number[] = []
  const failed: number[] = []
  let attempts = 0
  await bisect(items, {
    async attempt(some) {
      if (++attempts > 50) throw UNAVAILABLE // a search without an end takes no turn of the event loop
      if (some.some((item) => isBad(item, attempts))) throw REJECTED
      run.push(...some)
    },
    blamesOne: (error) => error === REJECTED,
    fail: (item) => void failed.push(item),
  })
  return { run, failed, attempts }
}

const hundred = Array.from({ length: 100 }, (_, index) => index)

test.each([[0], [49], [50], [99]])(
  'of a hundred, %i alone is found, by nine attempts at most',
  async (bad) => {
    const { run, failed, attempts } = await search((item) => item === bad, hundred)
    expect(failed).toEqual([bad])
    expect(run).toEqual(hundred.filter((item) => item !== bad))
    expect(attempts).toBeLessThanOrEqual(9)
  },
)

// Its client leaves, or another process gives a lock back.
test.each([1, 2, 3, 4, 5, 6, 7])(
  'all run where the one to blame is none any more after %i attempts',
  async (last) => {
    const { run, failed } = await search(
      (item, attempts) => item === 41 && attempts <= last,
      hundred,
    )
    expect([...run, ...failed].sort((one, other) => one - other)).toEqual(hundred)
  },
)
