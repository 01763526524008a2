/** Both surfaces agree on one table of inputs, sent through REST and through a real tRPC client. */
import { describe, expect, test } from 'vitest'
import { type Outcome, ofRest, ofTrpc } from '../support/outcome.ts'
import { newPet, petOf, storeNumberedPets, storePets } from '../support/pets.ts'
import { stringifyExact } from '../support/rest.ts'
import { serviceForFile } from '../support/service.ts'

const service = await serviceForFile()
await storeNumberedPets(service.sql, 120)

const NAME = 'Rex'
const id = 'must be an integer from -9223372036854775808 to 9223372036854775807'
const limit = 'must be an integer from 1 to 100'
const status = 'must be one of available, pending, sold'
const error = (message: string, code = 'BAD_REQUEST', status = 400) => ({ code, message, status })

function titled<Input, Expected>(cases: [Input, Expected][]) {
  return cases.map(
    ([input, expected]) => [stringifyExact(input).slice(0, 60), input, expected] as const,
  )
}

/** SQL and markup: plain text, as any other. */
const texts = [
  ...[`Robert'); DROP TABLE pets;--`, `' OR '1'='1`, `" OR ""="`, '` OR `1`=`1', `\\' OR 1=1 -- `],
  ...[`\\\\' OR 1=1 #`, `\\`, `x\\`, `'`, `''`, `?`, `$1 :name @variable %s %27 &#39;`],
  ...[`/*!50000 UNION SELECT hash FROM api_keys */`, `\b\t\n\r\x1a\x7f end`, `{{7*7}} \${7*7}`],
  `\u00bf' OR 1=1 --`, // 縗' in GBK, which breaks out of an escape of single bytes
  ...[
    `\u0427' \u02bc \uff07 OR 1=1`,
    `<script>alert("1")</script>`,
    `🐶'🏳️‍🌈\\"é\u0301 \u202e \ufeff`,
  ],
]

const creations: [input: unknown, pet: object | string][] = [
  [{ name: NAME, categoryId: 3 }, { ...newPet({ name: NAME, categoryId: 3n }) }],
  [
    { name: NAME, categoryId: 0, status: 'pending' },
    { categoryId: 0n, status: 'pending' },
  ],
  [
    { name: NAME, categoryId: -1, status: 'sold' },
    { categoryId: -1n, status: 'sold' },
  ],
  [{ name: ' Rex\n', categoryId: 3 }, { name: ' Rex\n' }],
  ...texts.map((name): [unknown, object] => [{ name, categoryId: 3 }, { name }]),
  [{ name: 'e\u0301', categoryId: 3 }, { name: 'e\u0301' }],
  [{ name: 'x'.repeat(255), categoryId: 3 }, { name: 'x'.repeat(255) }],
  [{ name: '😀'.repeat(255), categoryId: 3 }, { name: '😀'.repeat(255) }],
  [{ name: 'x'.repeat(256), categoryId: 3 }, 'name must have at most 255 characters'],
  [{ name: '😀'.repeat(256), categoryId: 3 }, 'name must have at most 255 characters'],
  [{ name: ' '.repeat(256), categoryId: 3 }, 'name must have at most 255 characters'],
  [{ name: '', categoryId: 3 }, 'name must not be empty'],
  [{ name: ' \t\n\u3000', categoryId: 3 }, 'name must not be blank'],
  [{ name: '\u200b\u3164\u2800\u0085', categoryId: 3 }, 'name must not be blank'],
  [{ name: '👩\u200d🚀', categoryId: 3 }, { name: '👩\u200d🚀' }],
  [{ name: 'R\ud83d', categoryId: 3 }, 'name must not contain an unpaired surrogate'],
  [{ name: 'R\0x', categoryId: 3 }, 'name must not contain the character NUL'],
  [{ name: 7, categoryId: 3 }, 'name must be a string'],
  [{ name: null, categoryId: 3 }, 'name must be a string'],
  [{ name: [NAME], categoryId: 3 }, 'name must be a string'],
  [{ categoryId: 3 }, 'name is required'],
  [{ name: NAME }, 'categoryId is required'],
  [{}, 'name is required; categoryId is required'],
  ...[2n ** 63n - 1n, -(2n ** 63n), 9007199254740993n, -9007199254740993n].map(
    (categoryId): [unknown, object] => [{ name: NAME, categoryId }, { categoryId }],
  ),
  ...[2n ** 63n, -(2n ** 63n) - 1n, 10n ** 30n, 7.5, '7', '', true, null, [7], {}].map(
    (categoryId): [unknown, string] => [{ name: NAME, categoryId }, `categoryId ${id}`],
  ),
  ...['free', 'Sold', '', 7, null, ['sold']].map((bad): [unknown, string] => [
    { name: NAME, categoryId: 3, status: bad },
    `status ${status}`,
  ]),
  [{ name: NAME, categoryId: 3, id: 7, colour: 'red' }, { name: NAME }],
]

describe('createPet', () => {
  test.each(titled(creations))('%s', async (_, input, expected) => {
    const rest = await ofRest(service.rest('POST', '/pets', { body: input }))
    // The input may be invalid on purpose, so the types of the client must not reject it.
    const trpc = await ofTrpc(service.trpc.createPet.mutate(input as never))
    if (typeof expected === 'string') {
      expect(rest).toEqual(error(expected))
      expect(trpc).toEqual(rest)
      return
    }
    expect(rest).toMatchObject({ output: expected })
    expect(Object.keys(outputOf(rest))).toEqual(Object.keys(petOf(1n)))
    expect(trpc).toEqual({ output: { ...outputOf(rest), id: outputOf(rest).id + 1n } })
    for (const outcome of [rest, trpc]) {
      const { id } = outputOf(outcome)
      expect(await ofRest(service.rest('GET', `/pets/${id}`))).toEqual(outcome)
      expect(await ofTrpc(service.trpc.getPet.query({ petId: id }))).toEqual(outcome)
    }
  })

  const outputOf = (outcome: Outcome) => (outcome as { output: { id: bigint } }).output
})

const firstIds = (count: number, step = 1, start = 1) =>
  Array.from({ length: count }, (_, index) => BigInt(start + index * step))

const pages: [input: Record<string, unknown>, ids: bigint[] | string][] = [
  [{}, firstIds(20)],
  [{ limit: 1 }, [1n]],
  [{ limit: 100 }, firstIds(100)],
  [{ limit: 0 }, 'limit must be at least 1'],
  [{ limit: -0 }, 'limit must be at least 1'],
  [{ limit: -5 }, 'limit must be at least 1'],
  [{ limit: 101 }, 'limit must be at most 100'],
  ...[7.5, 'ten', '', '1e1', ' 7', '+7', '0x7', [1, 2], 2 ** 53].map(
    (bad): [Record<string, unknown>, string] => [{ limit: bad }, `limit ${limit}`],
  ),
  [{ status: 'sold' }, firstIds(20, 3, 3)],
  ...['free', 'SOLD', '', ['sold', 'sold']].map((bad): [Record<string, unknown>, string] => [
    { status: bad },
    `status ${status}`,
  ]),
  [{ cursor: 10, limit: 3 }, [11n, 12n, 13n]],
  [{ cursor: 10, limit: 2, status: 'available' }, [13n, 16n]],
  [{ cursor: -(2n ** 63n), limit: 1 }, [1n]],
  [{ cursor: 2n ** 63n - 1n }, []],
  ...[2n ** 63n, -(2n ** 63n) - 1n, 7.5, 'x', '', [1, 2]].map(
    (bad): [Record<string, unknown>, string] => [{ cursor: bad }, `cursor ${id}`],
  ),
  [
    { limit: 0, status: 'x', cursor: 'y' },
    `limit must be at least 1; status ${status}; cursor ${id}`,
  ],
  [{ limit: 2, offset: 7, id: 9 }, [1n, 2n]],
]

describe('listPets', () => {
  test.each(titled(pages))('%s', async (_, input, expected) => {
    const query = Object.entries(input).flatMap(([name, value]) =>
      [value]
        .flat()
        .map((item): [string, string] => [name, Object.is(item, -0) ? '-0' : String(item)]),
    )
    const path = `/pets?${new URLSearchParams(query)}`
    const rest = await ofRest(service.rest('GET', path))
    expect(await ofTrpc(service.trpc.listPets.query(input as never))).toEqual(rest)
    if (typeof expected === 'string') expect(rest).toEqual(error(expected))
    else expect((rest as { output: { id: bigint }[] }).output.map(({ id }) => id)).toEqual(expected)
  })
})

const gets: [petId: unknown, expected: object][] = [
  [7, { output: petOf(7n, { name: 'Pet 7', categoryId: 6n }) }],
  [7n, { output: petOf(7n, { name: 'Pet 7', categoryId: 6n }) }],
  ...[0, -7, 9_999, 2n ** 63n - 1n, -(2n ** 63n)].map((petId): [unknown, object] => [
    petId,
    error(`There is no animal with the id ${petId}`, 'NOT_FOUND', 404),
  ]),
  ...[2n ** 63n, -(2n ** 63n) - 1n, 7.5, 'rex', '7 ', '+7', '٧', true, null].map(
    (petId): [unknown, object] => [petId, error(`petId ${id}`)],
  ),
]

describe('getPet', () => {
  test.each(titled(gets))('%s', async (_, petId, expected) => {
    const path = `/pets/${encodeURIComponent(String(petId))}`
    expect(await ofRest(service.rest('GET', path))).toEqual(expected)
    expect(await ofTrpc(service.trpc.getPet.query({ petId: petId as never }))).toEqual(expected)
  })
})

test('texts that REST accepts as numbers stay invalid on tRPC, also after calls on REST', async () => {
  const { rest, trpc } = service
  await rest('GET', '/pets?limit=7&cursor=0')
  await rest('GET', '/pets/1')
  await rest('POST', '/pets', { body: { name: NAME, categoryId: 3 } })
  for (const call of [
    trpc.listPets.query({ limit: '7' as never }),
    trpc.listPets.query({ cursor: '7' as never }),
    trpc.getPet.query({ petId: '7' as never }),
    trpc.createPet.mutate({ name: NAME, categoryId: '7' as never }),
  ]) {
    expect(await ofTrpc(call)).toMatchObject({ code: 'BAD_REQUEST' })
  }
})

test('a row that is no valid pet is 500 without details, because the output is validated', async () => {
  const stolen = { name: NAME, categoryId: 3n, status: 'stolen' as 'sold' }
  await storePets(service.sql, [stolen])
  const [{ id } = { id: 0 }] = await service.sql('select max(id) as id from pets')
  const bug = error('Internal server error', 'INTERNAL_SERVER_ERROR', 500)
  const { rest, trpc } = service
  const cursor = BigInt(Number(id) - 1)
  expect(await ofRest(rest('GET', `/pets/${id}`))).toEqual(bug)
  expect(await ofRest(rest('GET', `/pets?cursor=${cursor}`))).toEqual(bug)
  expect(await ofTrpc(trpc.getPet.query({ petId: BigInt(Number(id)) }))).toEqual(bug)
  expect(await ofTrpc(trpc.listPets.query({ cursor }))).toEqual(bug)
})
