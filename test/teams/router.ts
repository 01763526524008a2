/**
 * Animals that a team keeps: procedures for anyone, for callers, for the users behind the API key of a frontend, and for
 * editors among them. The client's stand-in runs them in browsers, so they take from `ctx` what needs Node or a package.
 */
import { TRPCError } from '@trpc/server'
import { z } from 'zod'
import { NewPet, Pet } from '../../src/petstore/pets/schema.ts'
import { proceduresWith, router } from '../../src/procedure/procedure.ts'
import { create, writeElsewhere } from '../../src/procedure/write.ts'
import { petOf } from '../support/pets.ts'
import { described, type Stores } from '../support/procedures.ts'
import type { Context } from './context.ts'

const { procedure } = proceduresWith<Stores, Context>()

const publicProcedure = procedure.meta({ access: { isPublic: true } })

/** The header with the token of a user behind the API key of a frontend. */
export const USER_TOKEN = 'X-User-Token'

const userToken = {
  description: 'The token of the user, from the sign-in of the team.',
  example:
    'eyJhbGciOiJIUzI1NiJ9.eyJyb2xlIjoiZWRpdG9yIiwic3ViIjoiQW5uIn0.tsZx_8eWQ7m1N7x-i3TonzSGtvTErDSz8d0iHx82p2s',
}
const team = { description: 'The team of the user.', example: 'red', isOptional: true } as const
const headers = { [USER_TOKEN]: userToken, 'X-Team': team }
const ofReader =
  'eyJhbGciOiJIUzI1NiJ9.eyJyb2xlIjoicmVhZGVyIiwic3ViIjoiQm9iIn0.6yvZmoDx005cR0Qpn41nBudTm0w3y7BCH-ZviYUyCwo'
const withoutUser = {
  code: 'UNAUTHORIZED',
  message: 'The token of the user is missing or invalid',
  description: 'The token of the user is missing, invalid or expired',
  metBy: { headers: { [USER_TOKEN]: 'none' } },
} as const
const noEditor = 'Only editors of the team may change something'

/** A procedure for users: its Idempotency-Keys are those of the user in a team. */
const forUsers = procedure
  .meta({ access: { headers, errors: [withoutUser] } })
  .use(async ({ ctx, next }) => {
    const user = await ctx.userOf(ctx.headers.get(USER_TOKEN))
    const actor = JSON.stringify([ctx.headers.get('X-Team'), user.name])
    return next({ ctx: { user, actor } })
  })

/** A procedure for editors. */
const forEditors = forUsers
  .meta({
    access: {
      headers,
      errors: [
        withoutUser,
        {
          ...{ code: 'FORBIDDEN', message: noEditor, description: 'The user is no editor' },
          metBy: { headers: { [USER_TOKEN]: ofReader } },
        },
      ],
    },
  })
  .use(({ ctx, next }) => {
    if (ctx.user.role !== 'editor') throw new TRPCError({ code: 'FORBIDDEN', message: noEditor })
    return next()
  })

const example = petOf(42n, { categoryId: 1n })
const creation = {
  ...{ takesKey: true, example, exampleInput: { name: 'Rex', categoryId: 1, status: 'available' } },
}
const Hours = z.object({ opens: z.string(), language: z.string() })
const Me = z.object({ user: z.string(), frontend: z.string(), key: z.string().nullable() })
const Caller = z.object({
  ...{ name: z.string(), holder: z.string(), readOnly: z.boolean() },
  role: z.string().optional(),
})
const NewInvitation = z.object({ to: z.string() }).meta({ id: 'NewInvitation' })
const Invitation = z.object({ to: z.string() }).meta({ id: 'Invitation' })

export const teamRouter = router({
  getHours: publicProcedure
    .meta(described('GET', '/hours', { example: { opens: '08:00', language: 'en' } }))
    .input(z.object({}))
    .output(Hours)
    .query(({ ctx }) => ({ opens: '08:00', language: ctx.language })),
  getVisitor: publicProcedure
    .meta(described('GET', '/visitor', { example: { name: 'anyone' } }))
    .input(z.object({}))
    .output(z.object({ name: z.string() }))
    .query(({ ctx: { caller } }) => ({ name: caller.name })),
  getCaller: procedure
    .meta(described('GET', '/caller', { example: { name: 'Ann', holder: '7', readOnly: false } }))
    .input(z.object({}))
    .output(Caller)
    .query(({ ctx: { caller } }) => ({ ...caller, holder: String(caller.holder) })),
  getMe: forUsers
    .meta(described('GET', '/me', { example: { user: 'Ann', frontend: 'shop', key: null } }))
    .input(z.object({}))
    .output(Me)
    .query(({ ctx }) => ({
      ...{ user: ctx.user.name, frontend: ctx.caller.name },
      key: ctx.headers.get('Authorization'),
    })),
  addOwnAnimal: procedure
    .meta(described('POST', '/own/animals', creation))
    .input(NewPet)
    .output(Pet)
    .mutation(({ ctx, input }) => create(ctx, ctx.stores.pets.newPet, input)),
  addAnimal: forEditors
    .meta(described('POST', '/animals', creation))
    .input(NewPet)
    .output(Pet)
    .mutation(({ ctx, input }) => create(ctx, ctx.stores.pets.newPet, input)),
  invite: procedure
    .meta(
      described('POST', '/invitations', { example: { to: 'Eve' }, exampleInput: { to: 'Eve' } }),
    )
    .input(NewInvitation)
    .output(Invitation)
    .mutation(({ ctx, input }) =>
      writeElsewhere(ctx, async ({ mailer, signal }) => {
        await mailer.send(input.to, signal)
        return input
      }),
    ),
})
