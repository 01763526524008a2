/** `npm run migrate`: brings the database to the newest schema. */
import { addressOf, command, refuseArguments, withDatabase } from './command.ts'

await command(async (config) => {
  refuseArguments()
  const names = await withDatabase(config, (_db, migrated) => migrated)
  const done = names.length > 0 ? `Migrated ${names.join(', ')}` : 'There was nothing to migrate'
  console.log(`${done}: ${addressOf(config)}`)
})
