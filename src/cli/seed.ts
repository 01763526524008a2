/** `npm run seed`: fills the catalogue with examples. */
import { migrate } from '../../db/migrate.ts'
import { seed } from '../pets/seed.ts'
import { command, refuseArguments } from './command.ts'

await command(async (db, address) => {
  refuseArguments()
  await migrate(db)
  const added = await seed(db)
  const done = added > 0 ? `Added ${added} animals` : 'The animals are all there already'
  console.log(`${done}: ${address}`)
})
