/** The packages of the service, wired as in their READMEs: tRPC, trpc-to-openapi, Kysely. */
import { initTRPC, TRPCError } from '@trpc/server'
import {
  type CreateExpressContextOptions,
  createExpressMiddleware,
} from '@trpc/server/adapters/express'
import express from 'express'
import { createOpenApiExpressMiddleware, type OpenApiMeta } from 'trpc-to-openapi'
import { z } from 'zod'
import { createPet, GetPet, getPet, ListPets, listPets, NewPet, Pet } from './pets.ts'

const authorization = `Bearer ${process.env.API_KEY}`

// The cheapest place to compare a key: a middleware of tRPC costs more per call.
function createContext({ req }: CreateExpressContextOptions) {
  if (req.headers.authorization !== authorization) throw new TRPCError({ code: 'UNAUTHORIZED' })
  return {}
}

const t = initTRPC.context<typeof createContext>().meta<OpenApiMeta>().create()

const router = t.router({
  listPets: t.procedure
    .meta({ openapi: { method: 'GET', path: '/pets' } })
    .input(ListPets)
    .output(z.array(Pet))
    .query(({ input }) => listPets(input)),

  createPet: t.procedure
    .meta({ openapi: { method: 'POST', path: '/pets' } })
    .input(NewPet)
    .output(Pet)
    .mutation(({ input }) => createPet(input)),

  getPet: t.procedure
    .meta({ openapi: { method: 'GET', path: '/pets/{petId}' } })
    .input(GetPet)
    .output(Pet)
    .query(async ({ input }) => {
      const pet = await getPet(input)
      if (!pet) throw new TRPCError({ code: 'NOT_FOUND', message: 'There is no such animal' })
      return pet
    }),
})

const app = express()
app.disable('x-powered-by')
app.use('/trpc', createExpressMiddleware({ router, createContext }))
app.use(
  '/v1',
  createOpenApiExpressMiddleware({
    router,
    createContext,
    responseMeta: ({ type, errors }) =>
      type === 'mutation' && errors.length === 0 ? { status: 201 } : {},
  }),
)

app.listen(Number(process.env.PORT), '127.0.0.1')
