/** `npm run seed`: fills the catalogue with examples. */
import { migrate } from '../../db/migrate.ts'
import { seed } from '../../db/seed.ts'
import { command } from './command.ts'

await command(async (db) => {
  await migrate(db)
  const added = await seed(db)
  console.log(added > 0 ? `Added ${added} animals` : 'The animals are all there already')
})
