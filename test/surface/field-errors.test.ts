/** One message for each invalid field of an input, which a client can show beside the field. */
import { expect, test } from 'vitest'
import { serviceForFile } from '../support/service.ts'

const service = await serviceForFile()

/** The field errors and the message that the tRPC client receives for a creation. */
async function mistakes(input: unknown): Promise<unknown> {
  // The input is invalid on purpose, so the types of the client must not reject it.
  const failed = await service.trpc.createPet.mutate(input as never).catch((error) => error)
  expect(failed.data).toMatchObject({ code: 'BAD_REQUEST', httpStatus: 400 })
  return { fields: failed.data.fields, message: failed.message }
}

test('two errors in one field: `fields` has the first one, the message has both', async () => {
  expect(await mistakes({ name: 'a\ud83d\0', categoryId: 3 })).toEqual({
    fields: { name: 'must not contain an unpaired surrogate' },
    message: 'name must not contain an unpaired surrogate; name must not contain the character NUL',
  })
})

test('an input that is not an object has its error under an empty name', async () => {
  const words = 'must be an object'
  for (const input of [null, 7, 'Rex', [], undefined]) {
    expect(await mistakes(input)).toEqual({ fields: { '': words }, message: `The input ${words}` })
  }
})
