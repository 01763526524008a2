/** Resolvers that contradict the description of their procedure: the first call of each says so. */
import { expect, test } from 'vitest'
import { z } from 'zod'
import type { Call } from '../../src/procedure/call.ts'
import { paged, pagingInputs } from '../../src/procedure/paging.ts'
import { router } from '../../src/procedure/procedure.ts'
import { write, writeElsewhere, writeIdempotent } from '../../src/procedure/write.ts'
import { described, procedure, resourcesOf } from '../support/procedures.ts'
import { serviceForFile } from '../support/service.ts'

const Toy = z.object({ label: z.string() }).meta({ id: 'Toy' })
const example = { label: 'Ball' }
const give = async () => example

let paths = 0
const ofQuery = (resolver: (call: Call) => Promise<{ label: string }>) =>
  procedure
    .meta(described('GET', `/toys/${paths++}`, { example }))
    .input(z.object({}))
    .output(Toy)
    .query(({ ctx }) => resolver(ctx))
const ofMutation = (takesKey: boolean, resolver: (call: Call) => Promise<{ label: string }>) =>
  procedure
    .meta(described('PUT', `/toys/${paths++}`, { takesKey, example }))
    .input(z.object({}))
    .output(Toy)
    .mutation(({ ctx }) => resolver(ctx))

const served = router({
  reads: ofQuery((call) => write(call, give)),
  writesNothing: ofMutation(false, give),
  returnsAnother: ofMutation(false, async (call) => ({ ...(await write(call, give)) })),
  lacksKey: ofMutation(true, (call) => write(call, give)),
  hidesKey: ofMutation(false, (call) => writeIdempotent(call, give)),
  keepsNoKey: ofMutation(true, (call) => writeElsewhere(call, give)),
  publicWithKey: procedure
    .meta({ access: { isPublic: true } })
    .mutation(({ ctx }) => writeIdempotent(ctx, give)),
  misfits: ofQuery(async () => ({ label: 7 as never })),
  misfitsLate: ofMutation(false, (call) => write(call, async () => ({ label: 7 as never }))),
  misfitsInPages: procedure
    .meta(described('GET', '/toys', { isPaged: true, example: [] }))
    .input(z.object(pagingInputs('toys')))
    .output(paged(z.array(Toy).meta({ id: 'Toys' })))
    .query(async () => ({ items: [{ label: 7 as never }], next: undefined })),
})
const service = await serviceForFile({}, { resources: resourcesOf(served) })

test.each([
  ['reads', 'reads is a query, and calls write(…)'],
  [
    'writesNothing',
    'The resolver of writesNothing must return the output of write(…), writeIdempotent(…), create(…) or writeElsewhere(…)',
  ],
  ['returnsAnother', 'The resolver of returnsAnother must return the output of write(…)'],
  ['lacksKey', 'lacksKey calls write(…), so its restMeta must not have takesKey'],
  ['hidesKey', 'hidesKey calls writeIdempotent(…), so its restMeta needs takesKey: true'],
  ['keepsNoKey', 'keepsNoKey calls writeElsewhere(…), so its restMeta must not have takesKey'],
  ['publicWithKey', 'publicWithKey is public, and calls writeIdempotent(…), which takes a key'],
  ['misfits', 'The output of misfits does not fit its schema'],
  ['misfitsLate', 'The output of misfitsLate does not fit its schema'],
  ['misfitsInPages', 'The output of misfitsInPages does not fit its schema'],
])('%s: 500, and the log has its name and the mistake', async (name, mistake) => {
  service.logged.length = 0
  const isQuery = served._def.procedures[name as keyof typeof served._def.procedures]
  const method = isQuery._def.type === 'query' ? 'GET' : 'POST'
  const input = encodeURIComponent(JSON.stringify('[{}]'))
  const answer =
    method === 'GET'
      ? await service.fetch(`/trpc/${name}?input=${input}`)
      : await service.fetch(`/trpc/${name}`, { method, body: JSON.stringify('[{}]') })
  expect(answer.status).toBe(500)
  expect(await answer.text()).not.toContain(mistake)
  const lines = service.logged.map((line) => JSON.parse(line))
  expect(lines.find(({ level }) => level === 'error')?.err.message).toContain(mistake)
})
