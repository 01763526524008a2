/** Examples for the catalogue. */
import type { Database } from '../../../db/tables.ts'

// One name of each category in a row, in the order of their numbers; no name occurs twice.
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

// One of each category in turn, as a shop window would show them, and no status in a block, either.
const animals = names.flatMap((row, position) =>
  row.map((name, category) => ({
    name,
    category_id: BigInt(category + 1),
    status: statuses[(position + 2 * category) % statuses.length] ?? 'available',
  })),
)

/** Adds the example animals that are not there by name yet, and gives how many it added. */
export async function seed(db: Database): Promise<number> {
  const wanted = animals.map(({ name }) => name)
  const present = await db.selectFrom('pets').select('name').where('name', 'in', wanted).execute()
  const known = new Set(present.map(({ name }) => name))
  const missing = animals.filter(({ name }) => !known.has(name))
  if (missing.length > 0) await db.insertInto('pets').values(missing).execute()
  return missing.length
}
