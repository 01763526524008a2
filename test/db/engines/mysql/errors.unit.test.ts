/** What each kind of error of a MySQL server says of its statement, by one or two of its numbers. */
import { expect, test } from 'vitest'
import { mysqlError } from '../../../../db/engines/mysql/errors.ts'

const errorOf = (errno: number, more = {}) =>
  mysqlError(Object.assign(new Error('No'), { errno, sql: 'insert …', ...more }))

test.each<[name: string, hadNoEffect: boolean, numbers: number[]]>([
  ['ConflictError', true, [1020, 1213, 3101]],
  ['ConflictError', false, [1317]],
  ['LockedError', true, [1205]],
  ['DatabaseUnavailableError', true, [1040, 1129, 1203, 9006]],
  ['UnfitServerError', true, [1036, 1143, 1290, 4031, 1047, 3796]],
  ['DatabaseUnavailableError', false, [3, 1021, 1053, 1969, 3024, 1180, 2013, 9001]],
])('%s, without an effect: %s', (name, hadNoEffect, numbers) => {
  for (const errno of numbers) {
    expect(errorOf(errno), `${errno}`).toMatchObject({ name, hadNoEffect, cause: { errno } })
  }
})

test('a row that the server rejected was not added', () => {
  expect(errorOf(1062)).toMatchObject({ name: 'DuplicateError' })
  for (const errno of [1048, 1264, 1369, 1406, 1644, 4025]) {
    expect(errorOf(errno)).toMatchObject({ name: 'RejectedRowError' })
  }
  // The signal of a trigger, which chooses its number.
  const signal = errorOf(30001, { sqlState: '45000' })
  expect(signal).toMatchObject({ name: 'RejectedRowError', message: 'No' })
})

test('any other error is one of the statement, without its values', () => {
  for (const errno of [1054, 1064, 1146]) {
    const name = 'RejectedStatementError'
    expect(errorOf(errno)).toMatchObject({ name, message: 'No', cause: { errno } })
    expect(errorOf(errno).cause).not.toHaveProperty('sql')
  }
})

test('an error that ended the connection, or of the socket, is uncertain', () => {
  for (const more of [{ fatal: true }, { syscall: 'read' }]) {
    expect(errorOf(0, more)).toMatchObject({ name: 'DatabaseUnavailableError', hadNoEffect: false })
  }
})

// server.mysql.test.ts has those that a statement can bring about.
test.each([
  [
    "Cannot convert string 'Sesame' from utf8mb4 to latin1",
    "Cannot convert string '…' from utf8mb4 to latin1",
  ],
  [
    "Got overflow when converting 'Sesame' to INT. Value truncated",
    "Got overflow when converting '…' to INT. Value truncated",
  ],
  [
    "Foreign key constraint for table 'toys', record 'Sesame' would lead to a duplicate entry in table 'pets', key 'name'",
    "Foreign key constraint for table 'toys', record '…' would lead to a duplicate entry in table 'pets', key 'name'",
  ],
  [
    "BIGINT value is out of range in '(`pets`.`n1` + length('Sesame') + 98765)'",
    "BIGINT value is out of range in '(`pets`.`n1` + length(…) + …)'",
  ],
  ["Column 'name' cannot be null", "Column 'name' cannot be null"],
  ["Unknown column 'name' in 'field list'", "Unknown column 'name' in 'field list'"],
])('%s: the log has %s', (text, logged) => {
  const { message, stack } = mysqlError(new Error(text))
  expect(message).toBe(logged)
  expect(stack).toContain(`Error: ${logged}\n`)
})
