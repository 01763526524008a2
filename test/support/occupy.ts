/** Lists that use one connection each, although concurrent lists share queries. */
import { until } from './instance.ts'

// Only lists with the same parameters share a query.
const parameters = ['', '&cursor=0', '&status=sold', '&status=sold&cursor=0']

/**
 * Starts lists with different queries, such as `?limit=3&cursor=0`, which all wait for a lock. Each
 * one starts after `count` includes the one before, so it is too late to share its query.
 */
export async function occupy<Answer>(
  lists: number,
  list: (query: string) => Promise<Answer>,
  count: () => Promise<number>,
): Promise<Promise<Answer>[]> {
  const answers: Promise<Answer>[] = []
  for (let index = 0; index < lists; index++) {
    answers.push(list(`?limit=${index + 1}${parameters[index % parameters.length]}`))
    await until(`list ${index} has a connection`, async () => (await count()) > index)
  }
  return answers
}
