/** What each error of a MySQL server says of its statement. Numbers of all kinds run in errors.mysql. */
import { expect, test } from 'vitest'
import { mysqlError } from '../../../../db/engines/mysql/errors.ts'
import { RejectedRowError } from '../../../../db/errors.ts'

const conflict = [1020, 1213, 3101]
const withoutEffect = [1205, 1040, 1129, 1203, 1206, 1226, 1637, 1044, 1142, 1143]
const unfit = [
  1290, 1792, 1836, 1874, 1881, 3032, 3989, 4031, 1047, 3781, 3782, 3783, 3796, 3797, 3798, 3799,
  4094,
]
const uncertain = [
  1021, 1026, 1028, 1030, 1037, 1041, 1114, 3015, 3019, 3675, 4081, 4082, 1053, 1077, 1158, 1159,
  1160, 1161, 1317, 1927, 1969, 3024, 3169, 1180, 3100, 2002, 2003, 2006, 2013, 2055, 9001, 9002,
  9004,
]
const rejectedRow = [
  1062, 1022, 1048, 1153, 1169, 1216, 1264, 1265, 1292, 1366, 1406, 1411, 1452, 1526, 1586, 1644,
  1690, 3140, 3819, 4025,
]
const others = [1054, 1064, 1146]

const errorOf = (errno: number, more = {}) =>
  mysqlError(Object.assign(new Error('No'), { errno, sql: 'insert …', ...more }))

test.each([
  ['ConflictError', conflict, true],
  ['DatabaseUnavailableError', withoutEffect.slice(1), true],
  ['LockedError', withoutEffect.slice(0, 1), true],
  ['UnfitServerError', unfit, true],
  ['DatabaseUnavailableError', uncertain, false],
])('%s: %j', (name, numbers, hadNoEffect) => {
  for (const number of numbers) {
    expect(errorOf(number), `${number}`).toMatchObject({
      name,
      hadNoEffect,
      cause: { errno: number },
    })
  }
})

test('a row that the server rejected was not added', () => {
  for (const number of rejectedRow) expect(errorOf(number)).toBeInstanceOf(RejectedRowError)
})

test('any other error is one of the statement, without its values', () => {
  for (const number of others) {
    expect(errorOf(number)).toMatchObject({ name: 'Error', message: 'No', errno: number })
    expect(errorOf(number)).not.toHaveProperty('sql')
  }
})

test('an error that ended the connection, or of the socket, is uncertain', () => {
  for (const more of [{ fatal: true }, { syscall: 'read' }]) {
    expect(errorOf(0, more)).toMatchObject({ name: 'DatabaseUnavailableError', hadNoEffect: false })
  }
})
