/** The bisection of items that fail together: the others take effect. */

interface Attempts<Item> {
  /** Runs items together. */
  attempt(items: Item[]): Promise<void>
  /** Whether one of several items may be to blame for an error of their attempt, which then had no effect. */
  blamesOne(error: unknown): boolean
  /** Takes note of an item that is to blame. */
  fail(item: Item, error: unknown): void
}

/**
 * Runs items of which one is to blame for the failure of all: finds it by bisection, and the next one if there is
 * another. Of a hundred items, a bad one costs eight attempts. Throws an error of which no one is to blame, and does
 * not run the rest.
 */
export async function bisect<Item>(
  items: Item[],
  { attempt, blamesOne, fail }: Attempts<Item>,
): Promise<void> {
  /** Those before `done` have run. One of those from there to `bad` fails, if that is defined. */
  let done = 0
  let bad: number | undefined = items.length
  while (done < items.length) {
    const end: number = bad === undefined ? items.length : done + Math.ceil((bad - done) / 2)
    const some = items.slice(done, end)
    try {
      await attempt(some)
      done = end
    } catch (error) {
      if (!blamesOne(error)) throw error
      if (some.length > 1) {
        bad = end
        continue
      }
      fail(some[0] as Item, error) // there is one
      done = end
      bad = undefined
    }
    if (done === bad) bad = undefined
  }
}
