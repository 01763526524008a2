/** Examples for the catalogue. */
import type { Database } from '../../db/tables.ts'

// Names by category and status; no name occurs twice.
const dogs = ['Rex', 'Bella', 'Charlie', 'Luna', 'Max', 'Daisy', 'Rocky', 'Molly', 'Bruno']
const cats = ['Whiskers', 'Misty', 'Simba', 'Cleo', 'Felix', 'Nala', 'Oscar', 'Tiger', 'Minka']
const birds = ['Kiwi', 'Rio', 'Sunny', 'Pepper', 'Polly', 'Sky', 'Mango', 'Blue']
const rodents = ['Nibbles', 'Peanut', 'Biscuit', 'Hazel', 'Pip', 'Cookie', 'Acorn', 'Clover']
const fish = ['Nemo', 'Bubbles', 'Coral', 'Finn', 'Pearl', 'Splash', 'Neptune', 'Ripple']
const statuses = ['available', 'available', 'pending', 'available', 'sold'] as const

const animals = [dogs, cats, birds, rodents, fish].flatMap((names, index) =>
  names.map((name, position) => ({
    name,
    category_id: BigInt(index + 1),
    status: statuses[position % statuses.length] ?? 'available',
  })),
)

/** Adds the example animals that are not there by name yet, and gives how many it added. */
export async function seed(db: Database): Promise<number> {
  const names = animals.map(({ name }) => name)
  const present = await db.selectFrom('pets').select('name').where('name', 'in', names).execute()
  const known = new Set(present.map(({ name }) => name))
  const missing = animals.filter(({ name }) => !known.has(name))
  if (missing.length > 0) await db.insertInto('pets').values(missing).execute()
  return missing.length
}
