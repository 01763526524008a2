/** A common combination: Express, zod and Kysely. */
import express, { type ErrorRequestHandler } from 'express'
import { ZodError } from 'zod'
import { createPet, GetPet, getPet, ListPets, listPets, NewPet } from './pets.ts'

const authorization = `Bearer ${process.env.API_KEY}`

const app = express()
app.disable('x-powered-by')
app.disable('etag') // a hash of each response, which the service does not compute either

app.use((req, res, next) => {
  if (req.headers.authorization === authorization) return next()
  res.status(401).json({ code: 'UNAUTHORIZED', message: 'The API key is missing or invalid' })
})

app.get('/v1/pets', async (req, res) => {
  res.json(await listPets(ListPets.parse(req.query)))
})

app.post('/v1/pets', express.json(), async (req, res) => {
  res.status(201).json(await createPet(NewPet.parse(req.body)))
})

app.get('/v1/pets/:petId', async (req, res) => {
  const pet = await getPet(GetPet.parse(req.params))
  if (pet) res.json(pet)
  else res.status(404).json({ code: 'NOT_FOUND', message: 'There is no such animal' })
})

const answerError: ErrorRequestHandler = (error, _req, res, _next) => {
  if (error instanceof ZodError) {
    res.status(400).json({ code: 'BAD_REQUEST', message: error.message })
  } else {
    console.error(error)
    res.status(500).json({ code: 'INTERNAL_SERVER_ERROR', message: 'Internal server error' })
  }
}
app.use(answerError)

app.listen(Number(process.env.PORT), '127.0.0.1')
