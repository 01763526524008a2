/** The search for inputs that fail what several inputs share. */

interface Attempts<Item> {
  /** Maximum number of items of an attempt. */
  size: number
  /** Runs items together. */
  attempt(items: Item[]): Promise<void>
  /** Whether one of several items may be to blame for an error of their attempt, which then had no effect. */
  blamesOne(error: unknown): boolean
  /** Takes note of items that failed. */
  fail(items: Item[], error: unknown): void
}

/**
 * Runs all items, as many together as may be. Where one is to blame for a failure, searches it by halves: of a
 * hundred items, a bad one costs nine attempts more. Throws what `fail` throws.
 */
export async function runInHalves<Item>(
  items: Item[],
  { size, attempt, blamesOne, fail }: Attempts<Item>,
): Promise<void> {
  /** Those before `done` have run. One of those from there to `bad` fails, if that is defined. */
  let done = 0
  let bad: number | undefined
  while (done < items.length) {
    const end = bad === undefined ? done + size : done + Math.ceil((bad - done) / 2)
    const some = items.slice(done, end)
    try {
      await attempt(some)
      done += some.length
    } catch (error) {
      if (some.length > 1 && blamesOne(error)) {
        bad = done + some.length
        continue
      }
      fail(some, error)
      done += some.length
      bad = undefined
    }
    if (done === bad) bad = undefined
  }
}
