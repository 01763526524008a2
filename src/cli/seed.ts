/** `npm run seed`: fills the catalogue with examples. */
import { describeUrl } from '../../db/connect.ts'
import { migrate } from '../../db/migrate.ts'
import { seed } from '../pets/seed.ts'
import { command, refuseArguments } from './command.ts'

await command(async (db, config) => {
  refuseArguments()
  await migrate(db)
  const added = await seed(db)
  const { address } = describeUrl(config.databaseUrl)
  console.log(
    `${added > 0 ? `Added ${added} animals` : 'The animals are all there already'}: ${address}`,
  )
})
