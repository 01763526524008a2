/** Examples for the catalogue. */
import type { Database } from '../../db/tables.ts'

// Names by category, in the order of their numbers; no name occurs twice.
const names = [
  ['Rex', 'Bella', 'Charlie', 'Luna', 'Max', 'Daisy', 'Rocky', 'Molly', 'Bruno'],
  ['Whiskers', 'Misty', 'Simba', 'Cleo', 'Felix', 'Nala', 'Oscar', 'Tiger', 'Minka'],
  ['Kiwi', 'Rio', 'Sunny', 'Pepper', 'Polly', 'Sky', 'Mango', 'Blue'],
  ['Nibbles', 'Peanut', 'Biscuit', 'Hazel', 'Pip', 'Cookie', 'Acorn', 'Clover'],
  ['Nemo', 'Bubbles', 'Coral', 'Finn', 'Pearl', 'Splash', 'Neptune', 'Ripple'],
]
const statuses = ['available', 'available', 'pending', 'available', 'sold'] as const

// One of each category in turn, as a shop window would show them, and no status in a block, either.
const animals = names
  .flatMap((ofCategory, category) =>
    ofCategory.map((name, position) => ({
      position,
      name,
      category_id: BigInt(category + 1),
      status: statuses[(position + 2 * category) % statuses.length] ?? 'available',
    })),
  )
  .toSorted((one, other) => one.position - other.position)
  .map(({ position: _, ...animal }) => animal)

/** Adds the example animals that are not there by name yet, and gives how many it added. */
export async function seed(db: Database): Promise<number> {
  const wanted = animals.map(({ name }) => name)
  const present = await db.selectFrom('pets').select('name').where('name', 'in', wanted).execute()
  const known = new Set(present.map(({ name }) => name))
  const missing = animals.filter(({ name }) => !known.has(name))
  if (missing.length > 0) await db.insertInto('pets').values(missing).execute()
  return missing.length
}
