/** The shop in front of a stand-in for the service: the service's own router, with animals in memory. */
import { petstoreHandlers } from '@petstore-catalogue/petstore/testing'
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react'
import { getResponse, HttpResponse, http } from 'msw'
import { setupServer } from 'msw/node'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { App } from '../src/App.tsx'
import { mail, telephone } from '../src/shop.ts'

const url = '/trpc'
const server = setupServer()
beforeAll(() => server.listen({ onUnhandledFrame: 'error' }))
afterAll(() => server.close())

beforeEach(() => {
  const pets = [
    { name: 'Rex', categoryId: 1 },
    { name: 'Misty', categoryId: 2 },
    { name: 'Kiwi', categoryId: 3, status: 'sold' },
  ] as const
  const apiKeys = [import.meta.env.VITE_PETSTORE_KEY, 'petstore_staff']
  server.use(...petstoreHandlers({ url, pets: [...pets], apiKeys }))
})
afterEach(() => {
  cleanup()
  server.resetHandlers()
  sessionStorage.clear()
})

function open(page: string): void {
  location.hash = page
  render(<App />)
}

/** Fills in the form for a new animal. */
async function fillIn(name: string): Promise<void> {
  sessionStorage.setItem('petstore-key', 'petstore_staff')
  open('#/add')
  fireEvent.change(await screen.findByLabelText('Name'), { target: { value: name } })
  fireEvent.change(screen.getByLabelText('Category'), { target: { value: '1' } })
}
const add = () => fireEvent.click(screen.getByRole('button', { name: 'Add to the catalogue' }))

test('a visitor sees the animals that can be had', async () => {
  open('#/')
  await screen.findByText('2 available animals in all')
  expect(screen.getByRole('link', { name: /Rex/ }).getAttribute('href')).toBe('#/pets/1')
  expect(screen.queryByText('Kiwi')).toBeNull()
})

test('a search that only a sold animal fits leads on to all animals', async () => {
  open('#/?name=kiwi')
  const link = await screen.findByRole('link', { name: 'Search all animals' })
  cleanup()
  open(link.getAttribute('href') ?? '')
  await screen.findByText('1 found among all 3 animals')
  screen.getByRole('link', { name: /Kiwi/ })
})

test('another status keeps the name and the kind', () => {
  open('#/?name=e&kind=1')
  fireEvent.click(screen.getByRole('radio', { name: 'Sold' }))
  expect(location.hash).toBe('#/?status=sold&name=e&kind=1')
})

test('the page of an animal that is missing does not show the next one', async () => {
  open('#/pets/0')
  await screen.findByText('There is no animal with the number 0.')
})

test('how to reach the shop is said on every page, but not to staff', async () => {
  open('#/')
  const link = screen.getByRole('link', { name: telephone })
  expect(link.getAttribute('href')).toBe('tel:+15550100')
  screen.getByRole('link', { name: mail })
  cleanup()
  await fillIn('Bella')
  expect(screen.queryByRole('link', { name: mail })).toBeNull()
})

test('what the service refuses is said at its field', async () => {
  await fillIn('x'.repeat(256))
  add()
  await screen.findByText('The name must have at most 255 characters')
})

test('a key that the service refuses at the form is asked for again', async () => {
  await fillIn('Bella')
  server.use(...petstoreHandlers({ url, apiKeys: [import.meta.env.VITE_PETSTORE_KEY] }))
  add()
  await screen.findByText(/does not know this key/)
})

test('the answer is lost: the form keeps what was entered, and the animal is added once', async () => {
  const standIn = petstoreHandlers({ url, pets: [] })
  const loseAnswer = http.post(
    `${url}/createPet`,
    async ({ request }) => {
      await getResponse(standIn, request)
      return HttpResponse.error()
    },
    { once: true },
  )
  server.use(loseAnswer, ...standIn)
  await fillIn('Bella')
  add()
  await screen.findByText(/nothing is lost/)
  add()
  await waitFor(() => expect(location.hash).toBe('#/pets/1')) // a second animal would be 2
})
