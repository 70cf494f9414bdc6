package scheduler_test

import (
	"context"
	"fmt"

	"parley/chat"
	"parley/scheduler"
	"parley/store/mem"
)

// A minimal agent with one scheduled job: it says what the job tells it to.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	s := scheduler.New(scheduler.Config{
		Store: mem.New(),
		Role:  func(context.Context, chat.Address, chat.Sender) (chat.Role, error) { return chat.User, nil },
		Deliver: func(_ context.Context, m chat.Message) error {
			fmt.Println(m.At, m.Origin, m.Text)
			cancel()
			return nil
		},
	})
	job, err := s.Add(ctx, scheduler.Job{
		Text: "Good morning!", Schedule: scheduler.Schedule{Cron: "0 9 * * 1-5", Zone: "Europe/Berlin"},
		At: chat.Address{Channel: "telegram", Chat: "42"}, By: chat.Sender{ID: "42"},
	})
	fmt.Println(job.Name, err, s.Fire(ctx, job.ID, "", false)) // without waiting for nine o'clock
	fmt.Println(s.Run(ctx))
	// Output:
	// Good morning! <nil> <nil>
	// {telegram 42 } schedule Good morning!
	// <nil>
}
