/** `--deep`: the cost of a filtered page at the beginning, in the middle and at the end of a large table. */
import { type Case, restCases } from './cases.ts'
import type { Table } from './compare.ts'
import { table, whole } from './tables.ts'

const FILTERS = [
  { id: 'all', title: 'all', query: '' },
  { id: 'available', title: 'available (three of five)', query: '&status=available' },
  { id: 'pending', title: 'pending (one in a million)', query: '&status=pending' },
]

const PLACES = [
  { id: 'beginning', title: 'at the beginning', share: 0 },
  { id: 'middle', title: 'in the middle', share: 0.5 },
  { id: 'end', title: 'at the end', share: 0.98 },
]

/** The range of the cursors of one case, as a share of the pets. */
const WIDTH = 0.01

/** Pages of 20 at random cursors near each place, for each filter, on one connection. */
export function deepCases(pets: number): Case[] {
  const [template] = restCases(pets).filter(({ id }) => id === 'page') as [Case] // it is there
  return FILTERS.flatMap((filter) =>
    PLACES.map((place) => ({
      ...template,
      id: `deep.${filter.id}.${place.id}`,
      title: `${filter.title}, ${place.title}`,
      connections: 1,
      request: (random) => {
        const cursor = Math.floor(pets * place.share) + random(pets * WIDTH)
        return { path: `/v1/pets?limit=20&cursor=${cursor}${filter.query}` }
      },
    })),
  )
}

/** One row per filter and server: the median time, its ratio to the first page, the database time. */
export function deepMarkdown({ title, version, servers, rows }: Table): string {
  const lines = FILTERS.flatMap((filter) =>
    servers.map(({ name }, server) => {
      const results = PLACES.map(({ id }) =>
        rows.find((row) => row.id === `deep.${filter.id}.${id}`)?.results.at(server),
      )
      const cells = results.map((result) => {
        if (!result) return ''
        const ratio = results[0] ? ` (× ${(result.p50 / results[0].p50).toFixed(1)})` : ''
        const database = (result.database / result.requests) * 1e6
        return `${result.p50.toFixed(2)} ms${ratio}${database > 0 ? `, ${whole(database)} µs` : ''}`
      })
      return [filter.title, name, ...cells]
    }),
  )
  return [
    `${title} (${version}), pages of 20 for one connection: p50, its ratio to that at the beginning, processor time of the database:`,
    table(['filter', 'server', ...PLACES.map((place) => place.title)], lines),
  ].join('\n\n')
}
