/** SQL and markup in an input are stored and returned as plain text. */
import { expect, test } from 'vitest'
import { startService } from '../support/service.ts'

const names = [
  `Robert'); DROP TABLE pets;--`,
  `' OR '1'='1`,
  `" OR ""="`,
  '` OR `1`=`1',
  `\\' OR 1=1 -- `,
  `\\\\' OR 1=1 #`,
  `\\`,
  `x\\`,
  `'`,
  `''`,
  `?`,
  `$1 :name @variable %s %27 &#39;`,
  `/*!50000 UNION SELECT hash FROM api_keys */`,
  `\b\t\n\r\x1a\x7f end`,
  `%' AND 1=0 UNION SELECT 1,2,3,4 --`,
  `\u00bf' OR 1=1 --`, // 縗' in GBK, which breaks out of an escape of single bytes
  `\u0427' \u02bc \uff07 OR 1=1`,
  `<script>alert("1")</script>`,
  `{{7*7}} \${7*7} #{7*7}`,
  `🐶'🏳️‍🌈\\"é\u0301 \u202e \ufeff`,
  'é'.repeat(255),
  '🐶'.repeat(255),
]

test('names are stored and returned unchanged', async () => {
  const service = await startService()
  const { rest, trpc, sql } = service
  for (const name of names) {
    const made = await rest('POST', '/pets', { body: { name, categoryId: 3, status: 'sold' } })
    expect(made.body).toMatchObject({ name })
    const id = BigInt((made.body as { id: number }).id)
    expect(await trpc.getPet.query({ petId: id })).toMatchObject({ name })
    const second = await trpc.createPet.mutate({ name, categoryId: 3n })
    expect((await rest('GET', `/pets/${second.id}`)).body).toMatchObject({ name })
  }
  const twice = names.flatMap((name) => [name, name])
  const listed = await trpc.listPets.query({ limit: 100 })
  expect(listed.map(({ name }) => name)).toEqual(twice)
  const stored = await sql('select name from pets order by id')
  expect(stored.map(({ name }) => name)).toEqual(twice)
  await service.stop()
})
