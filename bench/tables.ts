/** The results in Markdown, for README.md of this folder. */
import { median, type Row, type Table } from './compare.ts'
import type { Result } from './wrk.ts'

/** Writes one row of a table. */
export const line = (cells: string[]) => `| ${cells.join(' | ')} |`

/** Writes a table with these titles of columns. */
export const table = (titles: string[], rows: string[][]) =>
  [line(titles), line(titles.map(() => '---')), ...rows.map(line)].join('\n')

export const perSecond = ({ requests, seconds }: Result) => requests / seconds

/** Writes an integer with commas, or a dash if it is unknown. */
export const whole = (value: number) =>
  Number.isFinite(value) ? Math.round(value).toLocaleString('en') : '–'

const EQUAL =
  '†: reached only by answering equal questions once. All requests of this case are equal, and this server reads concurrent equal ones with one query.'

/** Writes the tables of one part: ratios with times, and the processor time of a request. */
export function markdown({ title, version, servers, rows }: Table): string {
  const names = ['', ...servers.map(({ name }) => name)]
  const speeds = rows.map((row) => [
    titleOf(row),
    ...row.results.map((result, index) => {
      // One connection sends one request at a time, so it shares no queries.
      const isShared = row.isEqual && row.connections > 1 && servers[index]?.sharesEqual
      return speed(result, row.results[0] ?? result, isShared ? ' †' : '')
    }),
  ])
  const memory = servers.map(({ memory: { idle, most } }) => `${mega(idle)}, ${mega(most)} MB`)
  const times = rows.map((row) => [row.title, ...row.results.map(processorTime)])
  const hasDatabase = rows.some((row) => row.results.some(({ database }) => database !== 0))
  const isMarked = speeds.some((cells) => cells.some((cell) => cell.includes('†')))
  return [
    `${title} (${version}):`,
    table(names, [...speeds, ['resident memory: idle, most', ...memory]]),
    ...(isMarked ? [EQUAL] : []),
    `Processor time of a request in µs: of the server${hasDatabase ? ' + of the database’s process' : ''}:`,
    table(names, times),
  ].join('\n\n')
}

/** A ratio below this one is marked. */
const LOW = 0.9

/**
 * Compares two servers of one part by the tables of its runs: for each case, the median of the runs'
 * ratios of requests per second and of p99, with the least and the greatest.
 */
export function besideMarkdown(runs: [Table, ...Table[]], server: string, beside: string): string {
  const [{ title, version, servers, rows }] = runs
  const [index, other] = [server, beside].map((name) =>
    servers.findIndex((found) => found.name === name),
  ) as [number, number] // one for each name
  const lines = rows.map((row, place) => {
    const ratios = (of: (result: Result) => number) =>
      runs.flatMap(({ rows }) => {
        const [one, two] = [rows[place]?.results[index], rows[place]?.results[other]]
        return one && two ? [of(one) / of(two)] : []
      })
    const speeds = ratios(perSecond)
    const isLow = (median(speeds) ?? 0) < LOW
    return [row.title, `${spread(speeds)}${isLow ? ' ‡' : ''}`, spread(ratios(({ p99 }) => p99))]
  })
  return [
    `${title} (${version}), ${server} ÷ ${beside}: the median of ${runs.length} ${runs.length === 1 ? 'run' : 'runs'} (least to greatest); ‡: more than a tenth below:`,
    table(['', 'requests per second', 'p99'], lines),
  ].join('\n\n')
}

function spread(values: number[]): string {
  const [middle = Number.NaN, least, most] = [
    median(values),
    Math.min(...values),
    Math.max(...values),
  ]
  return `${middle.toFixed(2)} (${least.toFixed(2)} to ${most.toFixed(2)})`
}

const titleOf = ({ title, commits }: Row) =>
  commits === undefined ? title : `${title} (this disk: ${whole(commits)} commits/s)`

/** Writes the ratio to the requests per second of the first server, and the times. */
function speed(result: Result, first: Result, mark: string): string {
  const p50 = `p50 ${result.p50.toFixed(1)} ms`
  const p99 = `p99 ${result.p99.toFixed(1)} ms`
  if (result === first) return `1.00 = ${whole(perSecond(first))}/s, ${p50}, ${p99}`
  const ratio = (perSecond(result) / perSecond(first)).toFixed(2)
  return `${ratio}${mark}, ${p50}, ${p99} (× ${(result.p99 / first.p99).toFixed(1)})`
}

function processorTime({ service, database, requests }: Result): string {
  const micro = (seconds: number) => whole((seconds / requests) * 1e6)
  return database === 0 ? micro(service) : `${micro(service)} + ${micro(database)}`
}

const mega = (bytes: number) => Math.round(bytes / 1e6)
