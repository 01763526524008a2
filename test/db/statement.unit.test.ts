/** The values of a compiled statement. */
import { expect, test } from 'vitest'
import { connect } from '../../db/connect.ts'
import { statement, type Value } from '../../db/statement.ts'

test('a value that is computed outside value(…) is rejected', async () => {
  await using db = await connect('sqlite:nowhere') // no statement is sent
  const find = statement((from, value: Value<string>) =>
    from
      .selectFrom('api_keys')
      .selectAll()
      .where('name', 'like', `${value((prefix) => prefix)}%`),
  )
  await expect(find(db, 'Graz')).rejects.toThrow('compute it inside value(…)')
})
