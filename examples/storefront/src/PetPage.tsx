/** One animal, and the next ones in the catalogue. */
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Contact } from './Contact.tsx'
import { Nothing } from './Nothing.tsx'
import { shorten } from './name.ts'
import { Page } from './Page.tsx'
import { PetCard } from './PetCard.tsx'
import { Portrait } from './Portrait.tsx'
import { useTRPC } from './petstore.ts'
import { nextPets, onePet } from './queries.ts'
import { type Filter, links } from './route.ts'
import { categoryOf, statusNames, statusSentences } from './shop.ts'
import { isInTrouble, Trouble } from './Trouble.tsx'

interface Props {
  id: bigint
  filter: Filter
}

export function PetPage({ id, filter }: Props) {
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  // Both queries begin in one tick, so the client sends them as one batch. A query that begins after
  // the response to another one costs an additional round trip.
  const query = useQuery(onePet(trpc, queryClient, id))
  const { data: more = [] } = useQuery(nextPets(trpc, queryClient, id, filter.status))
  const pet = query.data?.find((found) => found.id === id)
  const back = (
    <a className="back" href={links.catalogue(filter)}>
      <span aria-hidden="true">← </span>
      {filter.status ? `${statusNames[filter.status]} animals` : 'All animals'}
    </a>
  )

  if (query.data && !pet) {
    return (
      <>
        {back}
        <Page title="Not in the catalogue">
          <Nothing>
            <p>There is no animal with the number {String(id)}.</p>
            <a className="button" href={links.catalogue()}>
              See our animals
            </a>
          </Nothing>
        </Page>
      </>
    )
  }
  const category = pet && categoryOf(pet.categoryId)
  const species = category?.species ?? (isInTrouble(query) ? 'paw' : undefined)
  return (
    <>
      {back}
      <div className="pet">
        {species ? (
          <Portrait species={species} name={pet?.name ?? ''} />
        ) : (
          <div className="portrait skeleton" />
        )}
        <div>
          <Page title={pet?.name ?? `Animal ${id}`}>
            <Trouble query={query} />
            {pet && category && (
              <>
                <p className="subtitle">{category.name}</p>
                <p className={`status ${pet.status}`}>
                  {shorten(pet.name)} {statusSentences[pet.status]}
                </p>
                <Contact pet={pet} />
              </>
            )}
          </Page>
        </div>
      </div>
      {pet && more.length > 0 && (
        <section className="more" aria-labelledby="more">
          <h2 id="more">More animals</h2>
          <ul className="grid">
            {more.map((next) => (
              <li key={String(next.id)}>
                <PetCard pet={next} filter={filter} />
              </li>
            ))}
          </ul>
        </section>
      )}
    </>
  )
}
