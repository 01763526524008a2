/** `npm run migrate`: runs the migrations that the database does not have. */
import { command, migrateDatabase, print, refuseArguments } from '../process/programs.ts'

await command(async (config, location) => {
  refuseArguments()
  const names = await migrateDatabase(config)
  const done = names.length > 0 ? `Migrated ${names.join(', ')}` : 'Nothing to migrate'
  await print(`${done}: ${location}`)
})
