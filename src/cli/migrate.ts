/** `npm run migrate`: brings the database to the newest schema. */
import { migrate } from '../../db/migrate.ts'
import { command, refuseArguments } from './command.ts'

await command(async (db, address) => {
  refuseArguments()
  const names = await migrate(db)
  const done = names.length > 0 ? `Migrated ${names.join(', ')}` : 'There was nothing to migrate'
  console.log(`${done}: ${address}`)
})
