/** `npm run migrate`: brings the database to the newest schema. */
import { migrate } from '../../db/migrate.ts'
import { command } from './command.ts'

await command(async (db) => {
  const names = await migrate(db)
  console.log(names.length > 0 ? `Migrated: ${names.join(', ')}` : 'There was nothing to migrate')
})
