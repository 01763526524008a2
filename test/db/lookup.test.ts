/** Concurrent calls that read the same rows: each call has its own result. */
import { expect, onTestFinished, test } from 'vitest'
import { transformer } from '../../client/src/encoding.ts'
import { startService } from '../support/service.ts'

test('a batch with repeated ids and unknown ids returns a result for each call', async () => {
  const service = await startService()
  onTestFinished(() => service.stop())
  const names = ['Rex', 'Luna', 'Max']
  const made = []
  for (const name of names) {
    made.push(Number((await service.trpc.createPet.mutate({ name, categoryId: 3 })).id))
  }
  const [rex = 0, luna = 0, max = 0] = made
  const ids = [rex, luna, rex, 404_404, rex, max, 404_404, luna]
  const inputs = ids.map((petId, index) => [index, transformer.serialize({ petId })])
  const input = encodeURIComponent(JSON.stringify(Object.fromEntries(inputs)))
  const path = `/trpc/${ids.map(() => 'getPet').join()}?batch=1&input=${input}`
  const answer = await fetch(service.origin + path, {
    headers: { authorization: `Bearer ${service.key}` },
  })
  const answers = (await answer.json()) as { result?: { data: string } }[]
  const found = answers.map(({ result }) => {
    const pet = result && transformer.deserialize(result.data)
    return (pet as { name: string } | undefined)?.name
  })
  const expected = ['Rex', 'Luna', 'Rex', undefined, 'Rex', 'Max', undefined, 'Luna']
  expect(found).toEqual(expected)
})
