/** Example animals for the catalogue. */

import { execute, type RootDatabase, underLock } from '../../../db/index.ts'

// The column is the category, from 1. Each name is unique.
const names = [
  ['Rex', 'Whiskers', 'Kiwi', 'Nibbles', 'Nemo'],
  ['Bella', 'Misty', 'Rio', 'Peanut', 'Bubbles'],
  ['Charlie', 'Simba', 'Sunny', 'Biscuit', 'Coral'],
  ['Luna', 'Cleo', 'Pepper', 'Hazel', 'Finn'],
  ['Max', 'Felix', 'Polly', 'Pip', 'Pearl'],
  ['Daisy', 'Nala', 'Sky', 'Cookie', 'Splash'],
  ['Rocky', 'Oscar', 'Mango', 'Acorn', 'Neptune'],
  ['Molly', 'Tiger', 'Blue', 'Clover', 'Ripple'],
  ['Bruno', 'Minka'],
]
const statuses = ['available', 'available', 'pending', 'available', 'sold'] as const

// Categories and statuses alternate, so that the first page of a list has all of them.
const animals = names.flatMap((row, position) =>
  row.map((name, category) => ({
    name,
    category_id: BigInt(category + 1),
    status: statuses[(position + 2 * category) % statuses.length] ?? 'available',
  })),
)

/** Adds the example animals whose names are missing, and returns their number. Several at once add them once. */
export async function seed(db: RootDatabase): Promise<number> {
  return await underLock(db, async (session) => {
    const examples = animals.map(({ name }) => name)
    const pets = session.kysely.selectFrom('pets').select('name').where('name', 'in', examples)
    const present = new Set((await execute(session, pets)).rows.map(({ name }) => name))
    const missing = animals.filter(({ name }) => !present.has(name))
    if (missing.length > 0)
      await execute(session, session.kysely.insertInto('pets').values(missing))
    return missing.length
  })
}
