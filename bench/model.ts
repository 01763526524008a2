/** `--model`: predictions of capacity.ts for several deployments beside measurements. */
import { availableParallelism } from 'node:os'
import { blend, check, costsOf, type Deployment, MIXTURE, type Mixture } from './capacity.ts'
import { restCases } from './cases.ts'
import { compare, type Settings } from './compare.ts'
import { type BenchDatabase, growDatabase } from './databases.ts'
import type { Contestant } from './servers.ts'
import { table, whole } from './tables.ts'

/** The connections to the database. The model is computed from the first deployment. */
const POOLS = [10, 5, 2]

/** The mixture of calls of each case. */
const CALLS: Record<string, Mixture> = {
  getPet: { getPet: 1 },
  page: { page: 1 },
  createPet: { createPet: 1 },
  mixture: MIXTURE,
}

/** A deviation beyond this limit needs an explanation. */
const LARGE = 0.2

/** Measures each deployment with few and with many pets, and returns a table with the predictions. */
export async function model(
  service: Contestant,
  database: BenchDatabase,
  sizes: number[],
  settings: Settings,
): Promise<string> {
  const contestants = POOLS.map((pool) => ({
    ...service,
    name: `pool ${pool}`,
    env: { ...service.env, DATABASE_POOL_SIZE: String(pool) },
  }))
  const run = (pets: number, ids: string[], those: Contestant[]) => {
    const cases = restCases(pets).filter(({ id }) => ids.includes(id))
    const part = { id: 'model', title: 'model', cases, contestants: those }
    return compare(part, async () => database, settings)
  }
  const alone = await run(
    sizes[0] ?? 0,
    ['alone.listPets', 'alone.getPet', 'alone.createPet'],
    contestants.slice(0, 1),
  )
  const lines: string[][] = []
  let costs: ReturnType<typeof costsOf> | undefined
  for (const pets of sizes) {
    await growDatabase(database, pets)
    const { rows } = await run(pets, Object.keys(CALLS), contestants)
    costs ??= costsOf({ rows: [...rows, ...alone.rows] }, 0)
    for (const [place, pool] of POOLS.entries()) {
      const cores = availableParallelism()
      const deployment: Deployment = {
        processes: 1,
        pool,
        serviceCores: cores,
        databaseCores: cores,
        isShared: true,
        commits: Number.POSITIVE_INFINITY, // the measured times include the waits for the disk
        network: Number.POSITIVE_INFINITY,
        roundTrip: 0,
      }
      for (const { id, title, results } of rows) {
        const [calls, result] = [CALLS[id], results[place]]
        if (!calls || !result) continue
        const { wall, rate, measured, ratio } = check(blend(costs, calls), deployment, result)
        lines.push([
          whole(pets),
          String(pool),
          title,
          `${whole(rate)}/s (${wall})`,
          `${whole(measured)}/s`,
          `${ratio.toFixed(2)}${Math.abs(1 - ratio) > LARGE ? ' ‡' : ''}`,
        ])
      }
    }
  }
  return [
    `The model and what was measured (${database.version}); ‡: off by more than a fifth:`,
    table(['pets', 'pool', 'calls', 'predicted', 'measured', 'ratio'], lines),
  ].join('\n\n')
}
