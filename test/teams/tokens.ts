/** The tokens of users, by jose (https://github.com/panva/jose). */
import { TRPCError } from '@trpc/server'
import { jwtVerify, SignJWT } from 'jose'

type Role = 'reader' | 'editor'

const secret = new TextEncoder().encode('a secret of the tests, with 32 bytes or more')

/** Returns the token of a user. */
export const tokenOf = (user: string, role: Role, expiry = '1h'): Promise<string> =>
  new SignJWT({ role })
    .setProtectedHeader({ alg: 'HS256' })
    .setSubject(user)
    .setExpirationTime(expiry)
    .sign(secret)

/** Returns the user of a token. Throws UNAUTHORIZED. */
export async function userOf(token: string | null) {
  try {
    const { payload } = await jwtVerify<{ role: Role }>(token ?? '', secret)
    return { name: payload.sub ?? '', role: payload.role }
  } catch (cause) {
    const message = 'The token of the user is missing or invalid'
    throw new TRPCError({ code: 'UNAUTHORIZED', message, cause })
  }
}
