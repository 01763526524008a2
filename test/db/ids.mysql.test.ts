/** A session whose ids are not consecutive: concurrent creations have their own ids. */
import { expect, test } from 'vitest'
import { transformer } from '../../client/src/encoding.ts'
import { newProxiedDatabase } from '../support/proxy.ts'
import { serviceForFile } from '../support/service.ts'

const database = await newProxiedDatabase()
const { proxy } = database
proxy.rewrite((statement) =>
  statement.replace(/^set session autocommit/, 'set auto_increment_increment = 3, autocommit'),
)
const service = await serviceForFile({}, { database })

// Neither a few creations nor many share a statement, because their ids would be unknown.
test.each([2, 20])(
  'ids with an increment of three: %i creations of one batch have their own',
  async (count) => {
    const names = Array.from({ length: count }, (_, index) => `${index} of ${count}`)
    const inputs = names.map((name, index) => [
      index,
      transformer.serialize({ name, categoryId: 3 }),
    ])
    const begun = proxy.statements.length
    const answer = await service.fetch(`/trpc/${names.map(() => 'createPet').join()}?batch=1`, {
      method: 'POST',
      body: JSON.stringify(Object.fromEntries(inputs)),
    })
    expect(answer.status).toBe(200)
    const results = (await answer.json()) as { result: { data: string } }[]
    const made = results.map(({ result }) => transformer.deserialize(result.data))
    const rows = await service.sql('select id, name from pets')
    const kept = new Map(rows.map(({ id, name }) => [id, name]))
    for (const [index, pet] of made.entries()) {
      const { id, name } = pet as { id: bigint; name: string }
      expect([name, kept.get(id)]).toEqual([names[index], names[index]])
    }
    const sent = proxy.statements.slice(begun).filter((text) => text.startsWith('insert'))
    expect(sent).toHaveLength(count)
  },
)
